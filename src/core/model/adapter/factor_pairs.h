#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/model/adapter/adapter_file.h"

namespace foretoken {

/// A tensor of an adapter's file: one of the two factors for a tensor of the model.
struct FactorName {
  std::string of;    ///< The tensor that is changed, as the file calls it, without ".weight".
  bool down = true;  ///< Else up.
};

/// Pairs the tensors of an adapter's file. `name_of` reads a tensor's name, and says with an empty
/// `of` that it is no factor; `gguf` says in which form names are; `scale_of` says what a pair of a
/// rank is multiplied by. Refuses a tensor without its partner, shapes that do not fit each other
/// and what no model of the family has.
Result<AdapterFile> PairFactors(
    const TensorMap& tensors, std::string_view where, const Family& family, bool gguf,
    const std::function<FactorName(std::string_view name)>& name_of,
    const std::function<Result<double>(std::string_view of, std::int64_t rank)>& scale_of);

}  // namespace foretoken
