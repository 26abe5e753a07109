// How long passes of a model take: over rows of one sequence behind a context, all of which want
// logits, as verification does, and over a prompt of which only the last row does. Usage:
// pass_bench MODEL PRECISION CORES [ROUNDS [WHERE [SAYS [TAPS [CONTEXT [WINDOW [ANCHORS]]]]]]]: a
// folder, a GGUF file or the name of a shape of random weights, auto, bf16, f32 or portable, cores
// such as 0 or 0,1, whether experts lie in memory or are mapped, mmap, how many tokens its lm head
// says (0: all that it has), and layers such as 2,16,29: then each kind of pass is also timed while
// it keeps what enters these (-: none), how many tokens the rows are behind, and how many of the
// last and of the first positions attention sees (0: all). Every round times each kind of pass in
// turn; prints a line of JSON with the median milliseconds of each. Every pass has other tokens, so
// that experts that its rows choose are others too. "eagle3-of-SHAPE" is an EAGLE-3 drafter for a
// shape's target that says 32,000 tokens; its rows read the state that another row has left, as in
// a chain's later steps. "dflash-of-SHAPE" is a DFlash drafter of five layers, whose rows are a
// block behind features that it has read; its pass over a prompt reads the features.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/threads/cores.h"
#include "core/backend/device.h"
#include "core/model/config/named_shapes.h"
#include "core/model/families/read_config.h"
#include "core/model/model_weights.h"
#include "core/model/open_checkpoint.h"
#include "core/model/reduced_head.h"

namespace foretoken {
namespace {

constexpr int kUsualContext = 128;
constexpr int kPrompt = 512;
constexpr int kComputed = 512;  // Tokens of a context.
constexpr int kRows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

// A sequence's first `context` tokens and room behind them. Of a long one the first tokens are
// computed and copied on: how long passes take does not depend on what keys and values say.
class Context {
 public:
  Context(Model* model, const std::vector<int>& taps, int context)
      : model_(model),
        kv_(model->backend().AllocateKv(
            model->KvShapeFor(BlocksFor(std::int64_t{context} + kPrompt),
                              {.points = taps, .hidden = model->config().hidden}))) {
    for (std::int32_t block = 0; block < kv_.shape.blocks; ++block) blocks_.push_back(block);
    const FeatureSpec& feature = model->config().feature;
    if (reads_context()) kept_.resize(feature.tap_width());
    if (feature.in_rows()) left_.assign(model->config().hidden, 0.5F);
    const int computed = std::min(context, kComputed);
    ForwardBatch batch;
    batch.block_tables.push_back(blocks_.data());
    for (int position = 0; position < computed; ++position) {
      batch.rows.push_back(Row(position, /*block_left=*/-1));
      batch.rows.back().token = position % model->config().vocabulary;
    }
    batch.rows.back().wants_logits = !reads_context();
    model->Forward(batch, kv_);
    std::vector<KvMove> moves;
    for (int slot = computed; slot < context; ++slot) moves.push_back({slot % computed, slot});
    model->backend().CopyKv(kv_, moves);
  }

  // The row of a position; of a draft of blocks, of a block with so many places behind it, or what
  // reads the target's features (-1).
  ForwardRow Row(std::int32_t position, int block_left) const {
    ForwardRow row{0, {position, position, 0, position + 1, 0}, false, false};
    if (reads_context()) {
      if (block_left < 0) {
        row.feature.kept = kept_.data();
      } else {
        row.block_left = block_left;
      }
    }
    if (!left_.empty()) row.feature.left = left_.data();
    return row;
  }
  bool reads_context() const {
    return model_->config().feature.join == FeatureSpec::Join::kContext;
  }

  Model* model() { return model_; }
  KvStore& kv() { return kv_; }
  const std::int32_t* blocks() const { return blocks_.data(); }

 private:
  Model* model_;
  KvStore kv_;
  std::vector<float> left_;
  std::vector<BFloat16> kept_;
  std::vector<std::int32_t> blocks_;
};

// Passes over `rows` rows behind `begin` tokens of a context; logits of all rows or of the last.
class Passes {
 public:
  Passes(Context* context, int begin, int rows, bool all) : context_(context) {
    batch_.block_tables.push_back(context->blocks());
    const bool reads = begin == 0;
    for (int i = 0; i < rows; ++i) {
      ForwardRow row = context->Row(begin + i, reads ? -1 : rows - 1 - i);
      row.wants_logits = (all || i + 1 == rows) && !(reads && context->reads_context());
      row.wants_state = row.wants_logits && row.feature.left != nullptr;
      batch_.rows.push_back(row);
    }
  }

  double Ms() {
    Model* model = context_->model();
    for (ForwardRow& row : batch_.rows) {
      row.token = static_cast<Token>(random_() % static_cast<unsigned>(model->config().vocabulary));
    }
    const auto begin = std::chrono::steady_clock::now();
    model->Forward(batch_, context_->kv());
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  }

  int rows() const { return batch_.rows.size(); }

 private:
  Context* context_;
  ForwardBatch batch_;
  std::minstd_rand random_;
};

ModelConfig Eagle3Of(ModelConfig config) {
  constexpr int kDrafted = 32000;
  const int layers = config.layer_count();
  config.layers.resize(1);
  config.feature = {.join = FeatureSpec::Join::kAttended,
                    .points = {2, layers / 2, layers - 3},
                    .tapped = config.hidden,
                    .reduced = true,
                    .first_norm = false};
  config.embedded = std::exchange(config.vocabulary, kDrafted);
  return config;
}

ModelConfig DflashOf(ModelConfig config) {
  constexpr int kLayers = 5;
  constexpr int kBlock = 16;
  config.layers.resize(kLayers, config.layers.back());
  for (LayerSpec& layer : config.layers) layer.attention.both_ways = true;
  config.feature = {.join = FeatureSpec::Join::kContext,
                    .points = {1, 2, 3, 4, 5},
                    .tapped = config.hidden,
                    .reduced = true};
  config.parallel = {.positions = kBlock - 1, .mask_token = 0, .block = kBlock, .in_place = true};
  return config;
}

Result<ModelConfig> ShapeOf(std::string_view name) {
  struct Drafter {
    std::string_view prefix;
    ModelConfig (*of)(ModelConfig target);
  };
  for (const Drafter& drafter :
       {Drafter{"eagle3-of-", Eagle3Of}, Drafter{"dflash-of-", DflashOf}}) {
    if (!name.starts_with(drafter.prefix)) continue;
    FT_ASSIGN_OR_RETURN(ModelConfig target, NamedShape(name.substr(drafter.prefix.size())));
    ModelConfig config = drafter.of(std::move(target));
    config.tied_embeddings = false;
    return config;
  }
  return NamedShape(name);
}

double Median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// One kind of pass after the other, each of all kinds.
std::string MediansJson(std::span<const Passes> passes,
                        std::span<const std::vector<double>> times) {
  std::string json;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    json += fmt::format("{}\"{}\": {:.4f}", i == 0 ? "" : ", ", passes[i].rows(), Median(times[i]));
  }
  return json;
}

Result<std::string> Measure(const std::string& path, const std::string& precision_name,
                            Device* device, int rounds, ExpertsPlace experts, int says,
                            const std::vector<int>& taps, int context, const AttentionRule& sees) {
  std::optional<Checkpoint> checkpoint;
  ModelConfig config;
  if (std::filesystem::exists(path)) {
    FT_ASSIGN_OR_RETURN(checkpoint, OpenCheckpoint(path, ""));
    FT_ASSIGN_OR_RETURN(config, ReadModelConfig(*checkpoint));
  } else {
    FT_ASSIGN_OR_RETURN(config, ShapeOf(path));
    config.max_positions = std::max(config.max_positions, context + kPrompt);
  }
  for (LayerSpec& layer : config.layers) {
    if (sees.window == 0 || layer.attention.heads == 0) continue;
    layer.attention.window = sees.window;
    layer.attention.anchors = sees.anchors;
  }
  if (says > 0 && says < config.vocabulary) {
    std::vector<Token> tokens(says);
    std::iota(tokens.begin(), tokens.end(), 0);
    ReduceHead(tokens, &config, checkpoint.has_value() ? &*checkpoint : nullptr);
  }
  const Precision precision = precision_name == "bf16"       ? Precision::kBF16
                              : precision_name == "f32"      ? Precision::kF32
                              : precision_name == "portable" ? Precision::kPortable
                              : checkpoint.has_value()       ? UsualPrecision(*checkpoint)
                                                             : Precision::kBF16;
  const auto backend = device->MakeBackend(precision);
  std::shared_ptr<const ModelWeights> weights;
  if (checkpoint.has_value()) {
    FT_ASSIGN_OR_RETURN(weights, LoadWeights(*checkpoint, config, backend.get(), {}, experts));
  } else {
    weights = SyntheticWeights(config, /*seed=*/1, backend.get());
  }
  const auto model = weights->MakeModel(backend.get());
  std::vector<Passes> passes;
  const auto add = [&](Context* behind) {
    for (const int rows : kRows) passes.emplace_back(behind, context, rows, /*all=*/true);
    passes.emplace_back(behind, 0, kPrompt, /*all=*/false);
  };
  Context plain(model.get(), {}, context);
  add(&plain);
  const std::size_t kinds = passes.size();
  std::optional<Context> tapped;
  if (!taps.empty()) add(&tapped.emplace(model.get(), taps, context));
  std::vector<std::vector<double>> times(passes.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      passes[i].Ms();  // What lies in caches is that kind's own.
      const int repeats = passes[i].rows() == kPrompt ? 1 : 5;
      for (int repeat = 0; repeat < repeats; ++repeat) times[i].push_back(passes[i].Ms());
    }
  }
  const auto medians = [&](std::size_t first) {
    return MediansJson(std::span(passes).subspan(first, kinds),
                       std::span(times).subspan(first, kinds));
  };
  std::string json = fmt::format("{{\"model\": \"{}\", \"backend\": \"{}\", \"ms\": {{{}}}", path,
                                 backend->name(), medians(0));
  if (!taps.empty()) json += fmt::format(", \"ms_with_taps\": {{{}}}", medians(kinds));
  return json + "}";
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  using namespace foretoken;
  if (argc < 4) {
    std::fputs(
        "usage: pass_bench MODEL PRECISION CORES [ROUNDS [memory|mmap [SAYS [LAYER,LAYER...|- "
        "[CONTEXT [WINDOW [ANCHORS]]]]]]]\n",
        stderr);
    return 2;
  }
  const auto cores = ParseCores(argv[3]);
  if (!cores.ok()) {
    fmt::print(stderr, "pass_bench: {}\n", cores.error().message);
    return 2;
  }
  Device device(*cores);
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  const bool mapped = argc > 5 && std::string_view(argv[5]) == "mmap";
  const ExpertsPlace experts = mapped ? ExpertsPlace::kFile : ExpertsPlace::kMemory;
  const int says = argc > 6 ? std::atoi(argv[6]) : 0;
  std::vector<int> taps;
  for (const char* at = argc > 7 && argv[7] != std::string_view("-") ? argv[7] : ""; *at != '\0';) {
    char* end = nullptr;
    taps.push_back(static_cast<int>(std::strtol(at, &end, 10)));
    at = *end == ',' && end != at ? end + 1 : "";
  }
  const int context = argc > 8 ? std::max(1, std::atoi(argv[8])) : kUsualContext;
  const AttentionRule sees{.window = argc > 9 ? std::max(0, std::atoi(argv[9])) : 0,
                           .anchors = argc > 10 ? std::max(0, std::atoi(argv[10])) : 0};
  Result<std::string> result = std::string();
  device.Run([&] {
    result = Measure(argv[1], argv[2], &device, rounds, experts, says, taps, context, sees);
    return 0;
  });
  fmt::print("{}\n", result.ok() ? *result : result.error().message);
  return result.ok() ? 0 : 1;
}
