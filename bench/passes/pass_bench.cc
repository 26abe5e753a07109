// How long passes of a model take: over rows of one sequence behind a context, all of which want
// logits, as verification does, and over a prompt of which only the last row does. Usage:
// pass_bench MODEL PRECISION CORES [ROUNDS]: a folder or a GGUF file, auto, bf16, f32 or portable,
// cores such as 0 or 0,1. Every round times each kind of pass in turn; prints a line of JSON with
// the median milliseconds of each. Every pass has other tokens, so that experts that its rows
// choose are others too.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "backend/device.h"
#include "base/cores.h"
#include "model/families/read_config.h"
#include "model/model_weights.h"
#include "model/open_checkpoint.h"

namespace foretoken {
namespace {

constexpr int kContext = 128;
constexpr int kPrompt = 512;
constexpr int kRows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

// Passes over `rows` rows behind `context` tokens; logits of all rows or of the last.
class Passes {
 public:
  Passes(Model* model, int context, int rows, bool all)
      : model_(model),
        kv_(model->backend().AllocateKv(
            model->KvShapeFor(BlocksFor(std::int64_t{context} + rows)))) {
    for (std::int32_t block = 0; block < kv_.shape.blocks; ++block) blocks_.push_back(block);
    batch_.block_tables.push_back(blocks_.data());
    for (std::int32_t position = 0; position < context + rows; ++position) {
      const RowPlace place{position, position, 0, position + 1, 0};
      const bool last = position + 1 == context + rows;
      batch_.rows.push_back({0, place, all ? position >= context : last, false});
    }
    DrawTokens();
    if (context == 0) return;
    ForwardBatch before = batch_;
    before.rows.resize(static_cast<std::size_t>(context));
    model_->Forward(before, kv_);
    batch_.rows.erase(batch_.rows.begin(), batch_.rows.begin() + context);
  }

  double Ms() {
    DrawTokens();
    const auto begin = std::chrono::steady_clock::now();
    model_->Forward(batch_, kv_);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  }

  int rows() const { return static_cast<int>(batch_.rows.size()); }

 private:
  void DrawTokens() {
    const int vocabulary = model_->config().vocabulary;
    for (ForwardRow& row : batch_.rows) {
      row.token = static_cast<Token>(random_() % static_cast<unsigned>(vocabulary));
    }
  }

  Model* model_;
  KvStore kv_;
  std::vector<std::int32_t> blocks_;
  ForwardBatch batch_;
  std::minstd_rand random_;
};

double Median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

Result<std::string> Measure(const std::string& path, const std::string& precision_name,
                            Device* device, int rounds) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(path, ""));
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  const Precision precision = precision_name == "bf16"       ? Precision::kBF16
                              : precision_name == "f32"      ? Precision::kF32
                              : precision_name == "portable" ? Precision::kPortable
                                                             : UsualPrecision(checkpoint);
  const auto backend = device->MakeBackend(precision);
  FT_ASSIGN_OR_RETURN(const auto weights, LoadWeights(checkpoint, config, backend.get()));
  const auto model = weights->MakeModel(backend.get());
  std::vector<Passes> passes;
  for (const int rows : kRows) passes.emplace_back(model.get(), kContext, rows, /*all=*/true);
  passes.emplace_back(model.get(), 0, kPrompt, /*all=*/false);
  std::vector<std::vector<double>> times(passes.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      passes[i].Ms();  // What lies in caches is that kind's own.
      const int repeats = passes[i].rows() == kPrompt ? 1 : 5;
      for (int repeat = 0; repeat < repeats; ++repeat) times[i].push_back(passes[i].Ms());
    }
  }
  std::string json;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    json += fmt::format("{}\"{}\": {:.4f}", i == 0 ? "" : ", ", passes[i].rows(), Median(times[i]));
  }
  return fmt::format("{{\"model\": \"{}\", \"backend\": \"{}\", \"ms\": {{{}}}}}", path,
                     backend->name(), json);
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  using namespace foretoken;
  if (argc < 4) {
    std::fputs("usage: pass_bench MODEL PRECISION CORES [ROUNDS]\n", stderr);
    return 2;
  }
  const auto cores = ParseCores(argv[3]);
  if (!cores.ok()) {
    fmt::print(stderr, "pass_bench: {}\n", cores.error().message);
    return 2;
  }
  Device device(*cores);
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  Result<std::string> result = std::string();
  device.Run([&] {
    result = Measure(argv[1], argv[2], &device, rounds);
    return 0;
  });
  fmt::print("{}\n", result.ok() ? *result : result.error().message);
  return result.ok() ? 0 : 1;
}
