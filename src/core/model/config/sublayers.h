#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/config/model_config.h"

namespace foretoken {

/// Whether a layer has what mixes positions: attention, or a gated delta rule in its place.
inline bool HasMixer(const LayerSpec& layer) {
  return layer.attention.heads > 0 || layer.is_recurrent();
}
inline bool HasMlp(const LayerSpec& layer) { return layer.mlp.intermediate > 0; }

/// Whether every layer has both: true of all models but those that sub-layers were left out of.
bool IsWhole(const ModelConfig& config);

/// Sub-layers that a model leaves out, so that it drafts for the whole one with the same weights: a
/// layer's mixer, its MLP, or both, and then the layer does nothing at all.
struct SkippedSublayers {
  std::vector<bool> mixers;  ///< [layers]
  std::vector<bool> mlps;    ///< [layers]

  /// None of a model of so many layers.
  explicit SkippedSublayers(int layers) : mixers(layers), mlps(layers) {}

  int layers() const { return mixers.size(); }
  int count() const;
  /// As ParseSkippedSublayers reads it, in one spelling: "a3,a5-a8,m3".
  std::string ToText() const;
  bool operator==(const SkippedSublayers&) const = default;
};

/// Parses a list like "a3,m3,a5-a8" or "a3,m3,a5-8": a for a layer's mixer, m for its MLP, of
/// layers from 0 on. Refuses what is not of this form, layers that a model of `layers` does not
/// have, and an empty list.
Result<SkippedSublayers> ParseSkippedSublayers(std::string_view text, int layers);

/// All that is behind the first `exit` layers: early exit (LayerSkip, arXiv 2404.16710). Refuses an
/// exit that runs nothing or everything.
Result<SkippedSublayers> SkippedByExit(int exit, int layers);

/// The model without them: as many layers, and nothing where something is left out (no heads, an
/// intermediate width of 0). Refuses a set that leaves no mixer, or leaves out keys and values that
/// a layer which stays reads.
Result<ModelConfig> Without(const SkippedSublayers& skipped, const ModelConfig& whole);

}  // namespace foretoken
