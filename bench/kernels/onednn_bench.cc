// The matrix products of kernel_bench.cc through oneDNN, with weights in the layout it prefers.

#include <benchmark/benchmark.h>
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace {

// Args: rows, outputs, inputs.
void OneDnnMatMul(benchmark::State& state) {
  using dnnl::memory;
  omp_set_num_threads(1);  // One core, like the kernels it is compared with.
  const std::int64_t rows = state.range(0);
  const std::int64_t outputs = state.range(1);
  const std::int64_t inputs = state.range(2);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc x({rows, inputs}, memory::data_type::bf16, memory::format_tag::ab);
  const memory::desc w({inputs, outputs}, memory::data_type::bf16, memory::format_tag::any);
  const memory::desc y({rows, outputs}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, w, y), engine);
  const dnnl::matmul product(description);
  const std::int64_t bytes = outputs * inputs * 2;
  std::vector<memory> weights;
  for (std::int64_t total = 0; total < (std::int64_t{160} << 20); total += bytes) {
    memory copy(description.weights_desc(), engine);
    auto* const bits = static_cast<std::uint16_t*>(copy.get_data_handle());
    for (std::size_t i = 0; i < copy.get_desc().get_size() / 2; ++i) bits[i] = 0x3F80;
    weights.push_back(copy);
  }
  memory x_memory(x, engine);
  memory y_memory(y, engine);
  auto* const x_bits = static_cast<std::uint16_t*>(x_memory.get_data_handle());
  for (std::int64_t i = 0; i < rows * inputs; ++i) x_bits[i] = 0x3F80;
  std::size_t next = 0;
  for (auto _ : state) {
    product.execute(
        stream,
        {{DNNL_ARG_SRC, x_memory}, {DNNL_ARG_WEIGHTS, weights[next]}, {DNNL_ARG_DST, y_memory}});
    stream.wait();
    next = (next + 1) % weights.size();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "out", "in"});
  for (const auto& [outputs, inputs] : {std::pair{8192, 2048}, {3072, 576}, {576, 1536}}) {
    for (const int rows : {1, 2, 4, 8, 16, 32, 64}) bench->Args({rows, outputs, inputs});
  }
}
BENCHMARK(OneDnnMatMul)->Apply(Shapes);

}  // namespace
