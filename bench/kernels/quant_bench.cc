// Products with quantised weights on one core: the time of a product by rows, for every format and
// instruction set, beside what the core reads from memory in the same rounds.
//
//   quant_bench [FORMAT or SET ...]     no argument: every format, the sets of the machine
//
// FORETOKEN_BENCH_CORE picks the core (default: the last), FORETOKEN_BENCH_ROUNDS the rounds (7).
// Row counts take turns within a round, so that a disturbance strikes them alike; figures are
// medians over rounds, of reading memory the best one too.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/quant/packing.h"
#include "backend/cpu/quant/quant_isa.h"
#include "base/clock.h"
#include "base/cores.h"

namespace foretoken {
namespace {

constexpr std::int64_t kInputs = 4096;
// No cache holds the weights that few rows read. Many rows take a part of them: there arithmetic is
// the limit.
constexpr std::size_t kBytes = std::size_t{160} << 20;
constexpr int kFewRows[] = {1, 2, 4, 8, 16};
constexpr int kManyRows = 512;
constexpr int kManyRowsOutputs = 1024;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Random codes under scales of usual size, in panels that repeat.
Buffer RandomPanels(WeightFormat format, std::int64_t panels) {
  constexpr std::int64_t kDistinct = 8;
  const std::size_t panel_bytes = cpu::QuantPanelBytes(format, kInputs);
  Buffer buffer(static_cast<std::size_t>(panels) * panel_bytes);
  std::mt19937 generator(1);
  std::vector<std::byte> rows(kDistinct * panel_bytes);
  for (std::byte& byte : rows) byte = static_cast<std::byte>(generator() & 0x3F);
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    std::byte* const to = buffer.data() + static_cast<std::size_t>(panel) * panel_bytes;
    if (panel >= kDistinct) {
      std::memcpy(to, buffer.data() + static_cast<std::size_t>(panel % kDistinct) * panel_bytes,
                  panel_bytes);
      continue;
    }
    cpu::PanelRows row_blocks;
    for (int o = 0; o < cpu::kPanel; ++o) {
      row_blocks[static_cast<std::size_t>(o)] =
          rows.data() +
          static_cast<std::size_t>(panel * cpu::kPanel + o) * panel_bytes / cpu::kPanel;
    }
    cpu::PackQuantPanel(format, row_blocks, kInputs, to);
  }
  return buffer;
}

class Bench {
 public:
  Bench(WeightFormat format, const cpu::QuantKernels& kernels, int rounds)
      : format_(format),
        kernels_(kernels),
        rounds_(rounds),
        panels_(static_cast<std::int64_t>(kBytes / cpu::QuantPanelBytes(format, kInputs))),
        weights_(RandomPanels(format, panels_)),
        x_(static_cast<std::size_t>(kManyRows * kInputs)),
        blocks_(cpu::RowBlocks(kManyRows, kInputs)),
        y_(static_cast<std::size_t>(16 * panels_ * cpu::kPanel)) {
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (float& value : x_) value = normal(generator);
  }

  void Run() {
    std::vector<std::vector<double>> seconds(std::size(kFewRows));
    std::vector<double> many, quantize, memory;
    for (int round = -1; round < rounds_; ++round) {  // The first one warms up.
      memory.push_back(Read());
      for (std::size_t i = 0; i < std::size(kFewRows); ++i) {
        seconds[i].push_back(Multiply(kFewRows[i], static_cast<int>(panels_)));
      }
      many.push_back(Multiply(kManyRows, kManyRowsOutputs / cpu::kPanel));
      quantize.push_back(Quantize(16));
      if (round < 0) {
        for (auto& times : seconds) times.clear();
        many.clear();
        quantize.clear();
        memory.clear();
      }
    }
    Print(seconds, Median(many), Median(quantize), memory);
  }

 private:
  double weights_of(std::int64_t panels) const {
    return static_cast<double>(panels * cpu::kPanel * kInputs);
  }

  double Quantize(int rows) {
    const std::int64_t start = NowNs();
    kernels_.quantize({x_.data(), rows, kInputs, 0, rows, blocks_.data()});
    return static_cast<double>(NowNs() - start) * 1e-9;
  }

  // Without quantising the inputs, which several products share.
  double Multiply(int rows, int panels) {
    Quantize(rows);
    const std::int64_t start = NowNs();
    kernels_.product[static_cast<std::size_t>(format_)](
        {weights_.data(), blocks_.data(), y_.data(), std::ptrdiff_t{panels} * cpu::kPanel, rows,
         kInputs, panels * cpu::kPanel, 0, panels, false});
    return static_cast<double>(NowNs() - start) * 1e-9;
  }

  double Read() {
    const std::size_t bytes = kBytes / 4096 * 4096 / 2;
    const std::int64_t start = NowNs();
    const float sum = AvailableKernels().back()->read_stream(weights_.data(), bytes);
    const double seconds = static_cast<double>(NowNs() - start) * 1e-9;
    sink_ = sink_ + sum;
    return static_cast<double>(bytes) * 1e-9 / seconds;
  }

  void Print(const std::vector<std::vector<double>>& seconds, double many, double quantize,
             const std::vector<double>& memory) {
    const double one = Median(seconds[0]);
    const double bytes = static_cast<double>(weights_.bytes()) * 1e-9;
    fmt::print("{:7} {:12} memory {:5.1f} (best {:5.1f}) GB/s, one row {:5.1f} GB/s = {:3.0f} %;",
               FormatName(format_), kernels_.name, Median(memory),
               *std::ranges::max_element(memory), bytes / one, 100 * bytes / one / Median(memory));
    fmt::print(" ms");
    for (const auto& times : seconds) fmt::print(" {:.2f}", 1e3 * Median(times));
    fmt::print("; over one row");
    for (const auto& times : seconds) fmt::print(" {:.2f}", Median(times) / one);
    fmt::print("; GMAC/s of 16 rows {:.1f}, of {} {:.1f}; quantising {:.2f} us a row\n",
               16 * weights_of(panels_) * 1e-9 / Median(seconds.back()), kManyRows,
               kManyRows * weights_of(kManyRowsOutputs / cpu::kPanel) * 1e-9 / many,
               quantize * 1e6 / 16);
    std::fflush(stdout);
  }

  WeightFormat format_;
  const cpu::QuantKernels& kernels_;
  int rounds_;
  std::int64_t panels_;
  Buffer weights_;
  std::vector<float> x_;
  std::vector<cpu::RowBlock> blocks_;
  std::vector<float> y_;
  volatile float sink_ = 0;
};

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  using namespace foretoken;  // NOLINT(google-build-using-namespace)
  const char* const core = std::getenv("FORETOKEN_BENCH_CORE");
  const char* const rounds = std::getenv("FORETOKEN_BENCH_ROUNDS");
  PinCurrentThread(core != nullptr ? std::atoi(core) : AvailableCores().back());
  std::vector<WeightFormat> formats;
  std::vector<const cpu::QuantKernels*> sets;
  for (int i = 1; i < argc; ++i) {
    const auto format = ParseWeightFormat(argv[i]);
    const auto set = std::ranges::find_if(AvailableQuantKernels(), [&](const auto* kernels) {
      return kernels->name == std::string(argv[i]);
    });
    if (format && IsQuantized(*format)) {
      formats.push_back(*format);
    } else if (set != AvailableQuantKernels().end()) {
      sets.push_back(*set);
    } else {
      fmt::print(stderr, "quant_bench: {} is no quantised format and no instruction set here\n",
                 argv[i]);
      return 2;
    }
  }
  for (std::size_t i = 0; formats.empty() && i < kWeightFormats; ++i) {
    if (IsQuantized(static_cast<WeightFormat>(i))) formats.push_back(static_cast<WeightFormat>(i));
  }
  if (sets.empty()) sets = AvailableQuantKernels();
  for (const WeightFormat format : formats) {
    for (const cpu::QuantKernels* kernels : sets) {
      Bench(format, *kernels, rounds != nullptr ? std::atoi(rounds) : 7).Run();
    }
  }
  return 0;
}
