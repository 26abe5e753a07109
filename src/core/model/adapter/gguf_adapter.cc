#include <cmath>
#include <string>

#include "base/text/printable.h"
#include "core/model/adapter/factor_pairs.h"

namespace foretoken {
namespace {

// "blk.0.ffn_up.weight.lora_a" is A for "blk.0.ffn_up".
FactorName ReadGgufName(std::string_view name) {
  for (const bool down : {true, false}) {
    const std::string_view ending = down ? ".weight.lora_a" : ".weight.lora_b";
    if (!name.ends_with(ending)) continue;
    return {std::string(name.substr(0, name.size() - ending.size())), down};
  }
  return {};
}

Status CheckText(const GgufMetadata& metadata, std::string_view where, std::string_view key,
                 std::string_view wanted) {
  std::string value;
  FT_RETURN_IF_ERROR(metadata.String(key, &value));
  if (value == wanted) return {};
  return Invalid("{}: {} is '{}' but must be '{}'", where, key, Printable(value), wanted);
}

}  // namespace

Result<AdapterFile> GgufAdapter(const TensorMap& tensors, const GgufMetadata& metadata,
                                std::string_view where, const Family& family) {
  FT_RETURN_IF_ERROR(CheckText(metadata, where, "general.type", "adapter"));
  FT_RETURN_IF_ERROR(CheckText(metadata, where, "adapter.type", "lora"));
  FT_RETURN_IF_ERROR(CheckText(metadata, where, "general.architecture", family.gguf));
  if (metadata.Find("adapter.alora.invocation_tokens") != nullptr) {
    return Invalid("{}: has adapter.alora.invocation_tokens, but only plain LoRA is supported",
                   where);
  }
  double alpha = 0;
  if (metadata.Find("adapter.lora.alpha") == nullptr) {
    return Invalid("{}: lacks adapter.lora.alpha", where);
  }
  FT_RETURN_IF_ERROR(metadata.Number("adapter.lora.alpha", &alpha));
  if (!std::isfinite(alpha)) {
    return Invalid("{}: adapter.lora.alpha is {}", where, alpha);
  }
  // As llama.cpp has it, no alpha at all is a scale of 1.
  return PairFactors(tensors, where, family, /*gguf=*/true, ReadGgufName,
                     [alpha](std::string_view /*module*/, std::int64_t rank) -> Result<double> {
                       return alpha == 0 ? 1.0 : alpha / static_cast<double>(rank);
                     });
}

}  // namespace foretoken
