#include "door/convert/same_model.h"

#include <algorithm>
#include <cmath>

#include "core/model/decoder/rope.h"

namespace foretoken {
namespace {

bool Near(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

bool SameRope(const RopeSpec& a, const RopeSpec& b) {
  if (a.dims != b.dims || !Near(a.query_growth, b.query_growth) ||
      (a.query_growth > 0 && a.growth_step != b.growth_step)) {
    return false;
  }
  return std::ranges::equal(RopeFrequencies(a), RopeFrequencies(b), Near) &&
         Near(a.scaling.attention_factor, b.scaling.attention_factor);
}

// What is compared number by number is made equal first.
std::string_view DifferenceOfLayers(const LayerSpec& a, LayerSpec b) {
  if (a.is_recurrent() != b.is_recurrent()) return "which layers have attention";
  if (a.attention.window != b.attention.window) return "which layers see a window";
  if (!Near(a.attention.scale, b.attention.scale)) return "the scale of its scores";
  if (!Near(a.attention.score_cap, b.attention.score_cap)) return "the cap of its scores";
  if (!Near(a.mlp.routing.factor, b.mlp.routing.factor)) return "how its experts are weighed";
  b.attention.scale = a.attention.scale;
  b.attention.score_cap = a.attention.score_cap;
  b.mlp.routing.factor = a.mlp.routing.factor;
  if (a.mlp.routing != b.mlp.routing) return "how its experts are chosen and weighed";
  if (a.attention.rope != b.attention.rope) return "which layers rotate";
  return a == b ? "" : "what its layers compute";
}

}  // namespace

std::string_view DifferenceOf(const ModelConfig& a, const ModelConfig& b) {
  if (a.hidden != b.hidden || a.vocabulary != b.vocabulary || a.layers.size() != b.layers.size() ||
      a.max_positions != b.max_positions || a.tied_embeddings != b.tied_embeddings) {
    return "its sizes";
  }
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const std::string_view difference = DifferenceOfLayers(a.layers[i], b.layers[i]);
    if (!difference.empty()) return difference;
  }
  if (!std::ranges::equal(a.ropes, b.ropes, SameRope)) return "its rotation";
  if (a.norm != b.norm) return "its norms";
  BlockSpec block = b.block;
  block.scale = a.block.scale;
  if (a.block != block) return "where its norms stand";
  if (!Near(a.block.scale, b.block.scale) || !Near(a.embedding_scale, b.embedding_scale) ||
      !Near(a.logit_scale, b.logit_scale) || !Near(a.logit_cap, b.logit_cap)) {
    return "its multipliers";
  }
  return "";
}

}  // namespace foretoken
