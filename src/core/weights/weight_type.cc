#include "core/weights/weight_type.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text/parse_number.h"
#include "base/text/printable.h"

namespace foretoken {
namespace {

using enum WeightFormat;

constexpr WeightType kTypes[] = {
    {"q8_0", kQ8_0, 7},    {"q4_0", kQ4_0, 2},    {"q4_1", kQ4_1, 3},    {"q5_0", kQ5_0, 8},
    {"q5_1", kQ5_1, 9},    {"q4_k_m", kQ4_K, 15}, {"q4_k_s", kQ4_K, 14}, {"q5_k_m", kQ5_K, 17},
    {"q6_k", kQ6_K, 18},   {"q2_k", kQ2_K, 10},   {"q3_k_m", kQ3_K, 12}, {"iq4_nl", kIQ4_NL, 25},
    {"mxfp4", kMXFP4, 38}, {"bf16", kBF16, 32},   {"f16", kF16, 1},      {"f32", kF32, 0},
};

// "layers.3.down.weight" is layer 3; -1: none.
int LayerOf(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  int layer = -1;
  if (!name.starts_with(kLayers)) return layer;
  name.remove_prefix(kLayers.size());
  return ParseNumber(name.substr(0, name.find('.')), &layer) ? layer : -1;
}

// The first and the last eighth of the layers and every third between.
bool MattersMore(int layer, int layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

WeightFormat OfValues(std::string_view type, WeightFormat most, int layer, const MixBasis& model) {
  if (type == "q2_k") return model.queries_per_kv_head >= 4 ? kQ4_K : kQ3_K;
  if (type == "q3_k_m") return layer < 2 ? kQ5_K : kQ4_K;
  if (type == "q4_k_s") return layer < 4 ? kQ5_K : most;
  return MattersMore(layer, model.layers) ? kQ6_K : most;
}

WeightFormat OfDown(std::string_view type, WeightFormat most, int layer, const MixBasis& model) {
  if (type == "q2_k") return kQ3_K;
  if (type == "q3_k_m") {
    if (layer < model.layers / 16) return kQ5_K;
    return MattersMore(layer, model.layers) ? kQ4_K : kQ3_K;
  }
  if (type == "q4_k_s") return layer < model.layers / 8 ? kQ5_K : most;
  return MattersMore(layer, model.layers) ? kQ6_K : most;
}

// Without regard to the width.
WeightFormat Wanted(const WeightType& type, std::string_view name, const MixBasis& model) {
  if (!IsQuantized(type.format)) return type.format;
  const bool head = name == (model.tied_embeddings ? "embedding.weight" : "head.weight");
  if (head) return type.format == kQ8_0 ? kQ8_0 : kQ6_K;
  for (const std::string_view small : {".router.weight", ".shared_gate.weight"}) {
    if (name.ends_with(small)) return kF32;  // It decides what is computed.
  }
  const int layer = LayerOf(name);
  const bool mix =
      type.format == kQ2_K || type.format == kQ3_K || type.format == kQ4_K || type.format == kQ5_K;
  if (layer < 0 || !mix) return type.format;
  if (name.ends_with(".v.weight")) return OfValues(type.name, type.format, layer, model);
  if (name.ends_with(".down.weight")) return OfDown(type.name, type.format, layer, model);
  if (name.ends_with(".o.weight")) {
    if (type.name == "q2_k") return kQ3_K;
    if (type.name == "q3_k_m") return kQ4_K;
  }
  return type.format;
}

WeightFormat OfSmallBlocks(WeightFormat format) {
  switch (format) {
    case kQ2_K:
    case kQ3_K:
      return kQ4_0;
    case kQ4_K:
      return kQ5_0;
    case kQ5_K:
      return kQ5_1;
    case kQ6_K:
      return kQ8_0;
    default:
      return format;
  }
}

}  // namespace

std::span<const WeightType> WeightTypes() { return kTypes; }

std::string WeightTypeNames() {
  std::string names;
  for (const WeightType& type : kTypes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", type.name);
  }
  return names;
}

Result<WeightType> ParseWeightType(std::string_view name) {
  const bool mix = name == "q3_k" || name == "q4_k" || name == "q5_k";
  const std::string wanted = std::string(name) + (mix ? "_m" : "");
  const auto* found = std::ranges::find(kTypes, std::string_view(wanted), &WeightType::name);
  if (found != std::end(kTypes)) return *found;
  return Invalid("'{}' is no type of weights; there are {}", Printable(name), WeightTypeNames());
}

WeightFormat FormatFor(const WeightType& type, const TensorPlace& tensor, const MixBasis& model) {
  // Gains, biases and taps of all experts, heads or channels are two-dimensional.
  const bool numbers = tensor.name.ends_with(".bias") || tensor.name.ends_with(".taps.weight") ||
                       tensor.name.find("_norm.") != std::string_view::npos;
  if (tensor.dimensions < 2 || numbers) return kF32;
  const auto fits = [&](WeightFormat format) {
    return tensor.width % InfoOf(format).block_elements == 0;
  };
  const WeightFormat wanted = Wanted(type, tensor.name, model);
  if (fits(wanted)) return wanted;
  return fits(OfSmallBlocks(wanted)) ? OfSmallBlocks(wanted) : kF16;
}

}  // namespace foretoken
