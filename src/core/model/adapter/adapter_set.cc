#include "core/model/adapter/adapter_set.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

TensorView ViewOf(const std::vector<float>& values, std::int64_t outputs) {
  return {WeightFormat::kF32,
          {outputs, std::ssize(values) / outputs},
          reinterpret_cast<const std::byte*>(values.data())};
}

std::int64_t OutputsOfSum(const LowRank& sum) { return std::ssize(sum.up) / sum.rank; }

}  // namespace

AdapterSet::AdapterSet(std::span<const Adapter> adapters, Backend* backend)
    : count_(Int(adapters.size())), layout_(backend->layout()) {
  FT_CHECK(!adapters.empty());
  layers_.resize(adapters[0].layers.size());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    for (std::size_t matrix = 0; matrix < kAdaptedMatrices; ++matrix) {
      layers_[layer][matrix] = Pack(adapters, layer, matrix, backend);
    }
  }
}

AdaptedProduct AdapterSet::Pack(std::span<const Adapter> adapters, std::size_t layer,
                                std::size_t matrix, Backend* backend) {
  std::map<int, std::vector<std::size_t>> by_rank;
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const int rank = adapters[i].layers.at(layer)[matrix].rank;
    if (rank > 0) by_rank[rank].push_back(i);
  }
  AdaptedProduct product;
  product.places.resize(adapters.size());
  for (const auto& of_rank : by_rank) {  // Clang 14 captures no structured bindings.
    const int rank = of_rank.first;
    const std::vector<std::size_t>& members = of_rank.second;
    const auto sum_of = [&](std::size_t member) -> const LowRank& {
      return adapters[members[member]].layers[layer][matrix];
    };
    const auto down_of = [&](std::size_t i) { return std::array{ViewOf(sum_of(i).down, rank)}; };
    const auto up_of = [&](std::size_t i) {
      return std::array{ViewOf(sum_of(i).up, OutputsOfSum(sum_of(i)))};
    };
    const int size = members.size();
    FactorStack stack{backend->MakeStack(down_of(0), size), backend->MakeStack(up_of(0), size)};
    for (int i = 0; i < size; ++i) {
      const std::size_t member = i;
      backend->PackInto(down_of(member), i, &stack.down);
      backend->PackInto(up_of(member), i, &stack.up);
      product.places[members[member]] = {Int(product.stacks.size()), i};
    }
    widest_rank_ = std::max(widest_rank_, rank);
    widest_outputs_ = std::max(widest_outputs_, stack.up.outputs);
    widest_inputs_ = std::max(widest_inputs_, stack.down.inputs);
    product.stacks.push_back(std::move(stack));
  }
  return product;
}

}  // namespace foretoken
