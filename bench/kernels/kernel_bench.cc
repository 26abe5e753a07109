// The CPU backend's kernels on one core. Run with --benchmark_min_time=0.5 on an idle machine;
// FORETOKEN_BENCH_CORE picks the core (default: the last).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "base/numbers/integers.h"
#include "base/threads/cores.h"
#include "core/backend/cpu/cpu_backend.h"

namespace foretoken {
namespace {

std::vector<float> Random(std::size_t count, float scale) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

// Args: index of the instruction set, rows, outputs, inputs. Weights are copied until no cache
// holds them.
void MatMul(benchmark::State& state) {
  const cpu::Kernels& kernels = *AvailableKernels()[state.range(0)];
  const int rows = state.range(1);
  const std::int64_t outputs = state.range(2);
  const std::int64_t inputs = state.range(3);
  auto backend = MakeCpuBackend(kernels, nullptr, Precision::kBF16);
  const auto weights = Random(Size(outputs * inputs), 1.0F);
  const TensorView view{
      WeightFormat::kF32, {outputs, inputs}, reinterpret_cast<const std::byte*>(weights.data())};
  const std::int64_t bytes = outputs * inputs * 2;
  std::vector<Matrix> copies;
  for (std::int64_t total = 0; total < (std::int64_t{160} << 20); total += bytes) {
    copies.push_back(backend->Pack({&view, 1}));
  }
  const auto x = Random(Size(rows * inputs), 1.0F);
  std::vector<float> y(Size(rows * outputs));
  std::size_t next = 0;
  for (auto _ : state) {
    backend->MatMul(copies[next], x.data(), rows, y.data());
    next = (next + 1) % copies.size();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetLabel(kernels.name);
}

void MatMulArgs(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"isa", "rows", "out", "in"});
  for (std::size_t isa = 0; isa < AvailableKernels().size(); ++isa) {
    for (const auto& [outputs, inputs] : {std::pair{8192, 2048}, {3072, 576}, {576, 1536}}) {
      for (const int rows : {1, 2, 4, 6, 8, 12, 16, 24, 32, 64}) {
        bench->Args({static_cast<std::int64_t>(isa), rows, outputs, inputs});
      }
    }
  }
}
BENCHMARK(MatMul)->Apply(MatMulArgs);

// Stores keys and values of random numbers in slots [0, positions) of every layer.
void FillKv(Backend* backend, const HeadShape& heads, int positions, KvStore* kv) {
  constexpr int kAtOnce = 256;
  const int half = heads.head_dim / 2;
  RopeTable rope{heads.head_dim, positions, {}, {}};
  rope.cos = Buffer(Size(positions * half) * sizeof(float));
  rope.sin = Buffer(Size(positions * half) * sizeof(float));
  std::fill_n(rope.cos.as<float>(), positions * half, 1.0F);
  auto qkv = Random(Size(kAtOnce * heads.row_width()), 1.0F);
  for (int begin = 0; begin < positions; begin += kAtOnce) {
    std::vector<RowPlace> rows;
    for (int p = begin; p < std::min(positions, begin + kAtOnce); ++p) {
      rows.push_back({p, p, 0, p + 1, 0});
    }
    for (int layer = 0; layer < std::ssize(kv->shape.layers); ++layer) {
      backend->RotateAndStore(&rope, {rows, {}, {}}, heads, layer, qkv.data(), *kv);
    }
  }
}

// Args: rows that verify a chain, positions before it, the format of keys and values, and whether
// kernels are those of the portable arithmetic. The heads are those of a 135M Llama; eight layers,
// so that keys come from further than L1.
void Attention(benchmark::State& state) {
  const int rows = state.range(0);
  const int trunk = state.range(1);
  const auto format = static_cast<KvFormat>(state.range(2));
  const cpu::Kernels& kernels =
      *(state.range(3) != 0 ? PortableKernels() : AvailableKernels()).back();
  const HeadShape heads{9, 3, 64};
  const AttentionRule rule{.scale = 0.125};
  constexpr int kLayers = 8;
  auto backend = MakeCpuBackend(kernels, nullptr, {Precision::kBF16, format});
  state.SetLabel(std::string(kernels.name) + ", " + std::string(KvFormatName(format)));
  const int blocks = (trunk + rows) / kBlockSize + 1;
  const std::vector<KvLayer> layers(kLayers, {heads.kv_heads, heads.head_dim});
  KvStore kv = backend->AllocateKv({layers, blocks});
  FillKv(backend.get(), heads, trunk + rows, &kv);
  std::vector<std::int32_t> table(blocks);
  for (int i = 0; i < blocks; ++i) table[i] = i;
  std::vector<RowPlace> places;
  for (int i = 0; i < rows; ++i) {
    places.push_back({trunk + i, trunk + i, 0, trunk + i + 1, 0});
  }
  const std::int32_t* tables = table.data();
  const BatchPlan plan{places, {&tables, 1}, {}};
  const auto qkv = Random(Size(rows * heads.row_width()), 1.0F);
  std::vector<float> out(Size(rows * heads.heads * heads.head_dim));
  for (auto _ : state) {
    for (int layer = 0; layer < kLayers; ++layer) {
      backend->Attention(plan, heads, rule, layer, qkv.data(), kv, out.data());
    }
  }
  state.counters["us_per_layer"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kLayers * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(Attention)
    ->ArgNames({"rows", "trunk", "kv", "portable"})
    ->ArgsProduct({{1, 4, 8, 16, 32}, {256, 2048, 16384}, {0, 1, 2}, {0, 1}});

// Args: vocabulary, temperature in hundredths, candidates wanted, standard deviation of logits, and
// whether the maxima of their groups are known.
void NoisyTop(benchmark::State& state) {
  const int vocabulary = state.range(0);
  const float temperature = static_cast<float>(state.range(1)) / 100;
  std::vector<Candidate> best(state.range(2));
  auto backend = MakeCpuBackend(*AvailableKernels().back(), nullptr, Precision::kBF16);
  const auto logits = Random(Size(vocabulary), static_cast<float>(state.range(3)));
  std::vector<float> maxima;
  for (int begin = 0; begin < vocabulary; begin += kLogitGroup) {
    const auto group = logits.begin() + begin;
    maxima.push_back(*std::max_element(group, group + std::min(kLogitGroup, vocabulary - begin)));
  }
  const Logits row(logits.data(), state.range(4) != 0 ? maxima.data() : nullptr);
  std::uint64_t position = 0;
  for (auto _ : state) {
    backend->NoisyTop(row, vocabulary, temperature, {1, position++}, best);
    benchmark::DoNotOptimize(best.data());
  }
}
BENCHMARK(NoisyTop)
    ->ArgNames({"vocabulary", "T%", "n", "sigma", "maxima"})
    ->ArgsProduct({{2048, 49152, 151936}, {0, 70, 100}, {1, 4}, {3}, {0, 1}})
    ->Args({49152, 100, 1, 0, 1})
    ->Args({49152, 100, 8, 1, 1})
    ->Args({49152, 100, 1, 6, 1});

// What one layer of a small draft costs beside its matrix products. Arg: rows.
void SmallOperations(benchmark::State& state) {
  const int rows = state.range(0);
  constexpr int kWidth = 64;
  auto backend = MakeCpuBackend(*AvailableKernels().back(), nullptr, Precision::kBF16);
  const auto x = Random(Size(rows) * kWidth * 2, 1.0F);
  const auto gain = Random(kWidth, 1.0F);
  std::vector<float> out(Size(rows) * kWidth);
  for (auto _ : state) {
    backend->RmsNorm(x.data(), gain.data(), 1e-5F, rows, kWidth, out.data());
    backend->GatedMul(Activation::kSilu, x.data(), rows, kWidth, out.data());
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(SmallOperations)->Arg(1)->Arg(16);

// A matrix of a small draft, in cache. Args: rows, outputs, inputs.
void SmallMatMul(benchmark::State& state) {
  const int rows = state.range(0);
  const std::int64_t outputs = state.range(1);
  const std::int64_t inputs = state.range(2);
  auto backend = MakeCpuBackend(*AvailableKernels().back(), nullptr, Precision::kBF16);
  const auto weights = Random(Size(outputs * inputs), 1.0F);
  const TensorView view{
      WeightFormat::kF32, {outputs, inputs}, reinterpret_cast<const std::byte*>(weights.data())};
  const Matrix matrix = backend->Pack({&view, 1});
  const auto x = Random(Size(rows * inputs), 1.0F);
  std::vector<float> y(Size(rows * outputs));
  for (auto _ : state) backend->MatMul(matrix, x.data(), rows, y.data());
  state.SetBytesProcessed(state.iterations() * outputs * inputs * 2);
}
BENCHMARK(SmallMatMul)
    ->ArgNames({"rows", "out", "in"})
    ->ArgsProduct({{1, 8}, {64}, {64, 172}})
    ->Args({1, 344, 64})
    ->Args({1, 2048, 64})
    ->Args({8, 2048, 64});

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  const char* const core = std::getenv("FORETOKEN_BENCH_CORE");
  foretoken::PinCurrentThread(core != nullptr ? std::atoi(core)
                                              : foretoken::AvailableCores().back());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
