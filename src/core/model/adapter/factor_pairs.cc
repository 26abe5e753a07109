#include "core/model/adapter/factor_pairs.h"

#include <utility>

#include "base/text/printable.h"

namespace foretoken {
namespace {

Status CheckPair(const AdapterFactors& factors, std::string_view where) {
  const std::string name = Printable(factors.name_in_file);
  for (const auto& [view, called] : {std::pair(&factors.down, "A"), std::pair(&factors.up, "B")}) {
    if (view->shape.empty()) {
      return Invalid("{}: lacks the factor {} for {}, of which it has the other", where, called,
                     name);
    }
    if (view->shape.size() == 2) continue;
    return Invalid("{}: the factor {} for {} has {} dimensions, not 2", where, called, name,
                   view->shape.size());
  }
  const std::int64_t rank = factors.down.shape[0];
  if (rank >= 1 && factors.up.shape[1] == rank) return {};
  return Invalid("{}: for {} the factor A is of rank {} and B of rank {}", where, name, rank,
                 factors.up.shape[1]);
}

}  // namespace

Result<AdapterFile> PairFactors(
    const TensorMap& tensors, std::string_view where, const Family& family, bool gguf,
    const std::function<FactorName(std::string_view name)>& name_of,
    const std::function<Result<double>(std::string_view of, std::int64_t rank)>& scale_of) {
  AdapterFile adapter;
  for (const auto& [name, view] : tensors) {
    const FactorName factor = name_of(name);
    if (factor.of.empty()) {
      return Invalid("{}: tensor '{}' is no factor (A or B) of a low-rank adapter", where,
                     Printable(name));
    }
    const std::string weight = OurName(family, gguf, factor.of + ".weight");
    if (weight.empty()) {
      return Invalid("{}: changes {}, which a {} model does not have", where, Printable(factor.of),
                     family.name);
    }
    AdapterFactors& factors =
        adapter.factors[weight.substr(0, weight.size() - std::string_view(".weight").size())];
    TensorView& mine = factor.down ? factors.down : factors.up;
    if (!mine.shape.empty()) {
      return Invalid("{}: changes the same tensor as {} and as {}", where,
                     Printable(factors.name_in_file), Printable(factor.of));
    }
    factors.name_in_file = factor.of;
    mine = view;
  }
  if (adapter.factors.empty()) {
    return Invalid("{}: has no factors of a low-rank adapter", where);
  }
  for (auto& [name, factors] : adapter.factors) {
    FT_RETURN_IF_ERROR(CheckPair(factors, where));
    FT_ASSIGN_OR_RETURN(factors.scale, scale_of(factors.name_in_file, factors.down.shape[0]));
  }
  return adapter;
}

}  // namespace foretoken
