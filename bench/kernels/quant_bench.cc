// Products with quantised weights: their time by rows, for every format and instruction set, beside
// what the cores read from memory in the same rounds.
//
//   quant_bench [FORMAT or SET ...]     no argument: every format, the sets of the machine
//
// FORETOKEN_BENCH_CORES names the cores (default: the last one), FORETOKEN_BENCH_SECONDS how long
// each line is measured (4).
//
// Weights are read in slices of some megabytes, of which no cache holds all, and row counts take
// turns slice by slice, so that a disturbance strikes them alike. Figures are the median over all
// slices and, on a machine that others use as well, the tenth part that was least disturbed.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "base/threads/cores.h"
#include "base/threads/thread_pool.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/quant/packing.h"
#include "core/backend/cpu/quant/quant_isa.h"

namespace foretoken {
namespace {

constexpr int kInputs = 4096;
constexpr std::size_t kBytes = std::size_t{160} << 20;
constexpr std::size_t kSliceBytes = std::size_t{4} << 20;  // For each core.
constexpr int kFewRows[] = {1, 2, 4, 8, 16};
constexpr int kManyRows = 512;
constexpr int kManyRowsPanels = 16;  // Panels of each core; their weights stay in cache.

double Quantile(std::vector<double> values, double part) {
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size()));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// Random codes under scales of usual size, in panels that repeat.
Buffer RandomPanels(WeightFormat format, std::int64_t panels) {
  constexpr std::int64_t kDistinct = 8;
  const std::int64_t outputs = kDistinct * cpu::kPanel;
  std::mt19937 generator(1);
  std::vector<std::byte> blocks(FormatBytes(format, outputs * kInputs));
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(generator() & 0x3F);
  for (std::size_t at = 0; format == WeightFormat::kMXFP4 && at < blocks.size();
       at += InfoOf(format).block_bytes) {
    blocks[at] = std::byte{120};
  }
  const TensorView view{format, {outputs, kInputs}, blocks.data()};
  const std::size_t panel_bytes = cpu::QuantPanelBytes(format, kInputs);
  Buffer buffer(panels * panel_bytes);
  cpu::PackQuantPanels({&view, 1}, 0, kDistinct, buffer.data());
  for (std::size_t panel = kDistinct; panel < Size(panels); ++panel) {
    std::memcpy(buffer.data() + panel * panel_bytes,
                buffer.data() + panel % kDistinct * panel_bytes, panel_bytes);
  }
  return buffer;
}

class Bench {
 public:
  Bench(WeightFormat format, const cpu::QuantKernels& kernels, ThreadPool* pool)
      : format_(format),
        kernels_(kernels),
        pool_(pool),
        panel_bytes_(cpu::QuantPanelBytes(format, kInputs)),
        slice_panels_(static_cast<int>(kSliceBytes / panel_bytes_) * pool->size()),
        slices_(static_cast<int>(kBytes / panel_bytes_) / slice_panels_),
        weights_(RandomPanels(format, std::int64_t{slices_} * slice_panels_)),
        x_(Size(kManyRows) * kInputs),
        y_(Size(slice_panels_) * slices_ * cpu::kPanel * 16),
        sinks_(Size(pool->size())) {
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (float& value : x_) value = normal(generator);
    for (const int rows : kFewRows) blocks_.push_back(Quantize(rows));
    blocks_.push_back(Quantize(kManyRows));
  }

  void Run(double seconds) {
    std::vector<std::vector<double>> few(std::size(kFewRows));
    std::vector<double> many, reading;
    const std::int64_t end = NowNs() + static_cast<std::int64_t>(seconds * 1e9);
    while (NowNs() < end || many.size() < 3) {
      reading.push_back(Read());
      for (std::size_t i = 0; i < few.size(); ++i) few[i].push_back(Multiply(i, NextSlice()));
      many.push_back(MultiplyManyRows());
    }
    fmt::print("{} {} {}, {} rounds\n", FormatName(format_), kernels_.name,
               FormatCores(pool_->cores()), many.size());
    for (const double part : {0.5, 0.1}) {
      std::vector<double> times;
      for (const auto& samples : few) times.push_back(Quantile(samples, part));
      Print(part, times, Quantile(many, part), Quantile(reading, part));
    }
    std::fflush(stdout);
  }

 private:
  std::vector<cpu::RowBlock> Quantize(int rows) const {
    std::vector<cpu::RowBlock> blocks(cpu::RowBlocks(rows, kInputs));
    kernels_.quantize({x_.data(), rows, kInputs, 0, rows, blocks.data()});
    return blocks;
  }

  int NextSlice() { return next_ = (next_ + 1) % slices_; }

  // Seconds that `work(worker, begin, end)` takes for shares of panels [begin, begin + panels).
  template <typename Work>
  double Time(int begin, int panels, const Work& work) {
    const std::int64_t start = NowNs();
    pool_->Run([&](int worker, int workers) {
      work(worker, begin + panels * worker / workers, begin + panels * (worker + 1) / workers);
    });
    return static_cast<double>(NowNs() - start) * 1e-9;
  }

  double Multiply(std::size_t index, int slice) {
    return Time(slice * slice_panels_, slice_panels_, [&](int, int begin, int end) {
      Product(kFewRows[index], blocks_[index], slice_panels_ * slices_, begin, end);
    });
  }

  double MultiplyManyRows() {
    const int panels = kManyRowsPanels * pool_->size();
    return Time(0, panels, [&](int, int begin, int end) {
      Product(kManyRows, blocks_.back(), panels, begin, end);
    });
  }

  void Product(int rows, const std::vector<cpu::RowBlock>& x, int panels, int begin, int end) {
    kernels_.product[static_cast<std::size_t>(format_)](
        {weights_.data(), panel_bytes_, x.data(), y_.data(), std::ptrdiff_t{panels} * cpu::kPanel,
         rows, kInputs, panels * cpu::kPanel, begin, end, false,
         weights_.data() + end * panel_bytes_});
  }

  double Read() {
    return Time(NextSlice() * slice_panels_, slice_panels_, [&](int worker, int begin, int end) {
      const std::size_t bytes = Size(end - begin) * panel_bytes_;
      sinks_[worker] += AvailableKernels().back()->read_stream(
          weights_.data() + begin * panel_bytes_, bytes / 4096 * 4096);
    });
  }

  void Print(double part, const std::vector<double>& times, double many, double reading) const {
    const double bytes = static_cast<double>(slice_panels_) * static_cast<double>(panel_bytes_);
    const double weights = double{cpu::kPanel} * kInputs;
    fmt::print("  {:3.0f} %: memory {:5.1f} GB/s, one row {:5.1f} ({:3.0f} %); rows", 100 * part,
               bytes * 1e-9 / reading, bytes * 1e-9 / times[0], 100 * reading / times[0]);
    for (std::size_t i = 0; i < times.size(); ++i) {
      fmt::print(" {}: {:.2f}", kFewRows[i], times[i] / times[0]);
    }
    fmt::print("; GMAC/s of 16 rows {:.1f}, of {} {:.1f}\n",
               16 * weights * slice_panels_ * 1e-9 / times.back(), kManyRows,
               kManyRows * weights * kManyRowsPanels * pool_->size() * 1e-9 / many);
  }

  WeightFormat format_;
  const cpu::QuantKernels& kernels_;
  ThreadPool* pool_;
  std::size_t panel_bytes_;
  int slice_panels_;
  int slices_;
  int next_ = 0;
  Buffer weights_;
  std::vector<float> x_;
  std::vector<std::vector<cpu::RowBlock>> blocks_;  // By kFewRows, then kManyRows.
  std::vector<float> y_;
  std::vector<float> sinks_;
};

int Main(int argc, char** argv) {
  const char* const names = std::getenv("FORETOKEN_BENCH_CORES");
  const char* const seconds = std::getenv("FORETOKEN_BENCH_SECONDS");
  Result<CoreSet> cores = CoreSet{AvailableCores().back()};
  if (names != nullptr) cores = ParseCores(names);
  if (!cores.ok()) {
    fmt::print(stderr, "quant_bench: {}\n", cores.error().message);
    return 2;
  }
  std::vector<WeightFormat> formats;
  std::vector<const cpu::QuantKernels*> sets;
  for (const std::string_view word : std::vector<std::string_view>(argv + 1, argv + argc)) {
    const auto format = ParseWeightFormat(word);
    const auto set = std::ranges::find_if(
        AvailableQuantKernels(), [&](const auto* kernels) { return kernels->name == word; });
    if (format && IsQuantized(*format)) {
      formats.push_back(*format);
    } else if (set != AvailableQuantKernels().end()) {
      sets.push_back(*set);
    } else {
      fmt::print(stderr, "quant_bench: '{}' is no quantised format and no set of this machine\n",
                 word);
      return 2;
    }
  }
  if (formats.empty()) {
    for (std::size_t i = 0; i < kWeightFormats; ++i) {
      if (IsQuantized(static_cast<WeightFormat>(i)))
        formats.push_back(static_cast<WeightFormat>(i));
    }
  }
  if (sets.empty()) sets = AvailableQuantKernels();
  ThreadPool pool(*cores);
  pool.Adopt();
  for (const WeightFormat format : formats) {
    for (const cpu::QuantKernels* kernels : sets) {
      Bench(format, *kernels, &pool).Run(seconds != nullptr ? std::atof(seconds) : 4);
    }
  }
  return 0;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) { return foretoken::Main(argc, argv); }
