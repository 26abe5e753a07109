#include "core/backend/cpu/measure.h"

#include <algorithm>
#include <cstring>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/backend/cpu/cpu_backend.h"

namespace foretoken {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{256} << 20;
constexpr int kPasses = 7;

}  // namespace

double MeasureReadBandwidth(Device* device) {
  ThreadPool& pool = device->pool();
  const cpu::Kernels& kernels = *AvailableKernels().back();
  std::vector<Buffer> buffers(pool.size());
  // Each worker touches its own pages first, so that they are near it.
  pool.Run([&](int worker, int) {
    Buffer& buffer = buffers[worker];
    buffer = Buffer(kStreamBytes);
    std::memset(buffer.data(), 1, kStreamBytes);
  });
  std::vector<float> sinks(buffers.size());
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::int64_t start = NowNs();
    pool.Run([&](int worker, int) {
      const std::size_t w = worker;
      sinks[w] = kernels.read_stream(buffers[w].data(), kStreamBytes);
    });
    const double bytes = static_cast<double>(kStreamBytes) * pool.size();
    best = std::max(best, bytes / static_cast<double>(NowNs() - start));
  }
  // What was read decides, so that no compiler leaves the reading out.
  for (const float sink : sinks) FT_CHECK(sink > 0);
  return best;
}

std::vector<MatMulCost> MeasureMatMulCosts(Backend* backend, std::span<const int> row_counts) {
  constexpr int kMatrices = 8;
  constexpr std::int64_t kOutputs = 8192;
  constexpr std::int64_t kInputs = 2048;
  constexpr int kRounds = 5;
  std::vector<float> values(kOutputs * kInputs);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) - 6;
  const TensorView view{
      WeightFormat::kF32, {kOutputs, kInputs}, reinterpret_cast<const std::byte*>(values.data())};
  std::vector<Matrix> matrices;
  for (int i = 0; i < kMatrices; ++i) matrices.push_back(backend->Pack({&view, 1}));

  const auto time = [&](int rows, const std::vector<float>& x, std::vector<float>* y) {
    const std::int64_t start = NowNs();
    for (const Matrix& matrix : matrices) backend->MatMul(matrix, x.data(), rows, y->data());
    return static_cast<double>(NowNs() - start) * 1e-9 / kMatrices;
  };
  const int most = *std::ranges::max_element(row_counts);
  const std::vector<float> x(Size(most * kInputs), 0.5F);
  std::vector<float> y(Size(most * kOutputs));
  time(most, x, &y);
  std::vector<std::vector<double>> seconds(row_counts.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      seconds[i].push_back(time(row_counts[i], x, &y));
    }
  }
  std::vector<MatMulCost> costs;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    std::nth_element(seconds[i].begin(), seconds[i].begin() + kRounds / 2, seconds[i].end());
    costs.push_back({row_counts[i], seconds[i][kRounds / 2]});
  }
  return costs;
}

}  // namespace foretoken
