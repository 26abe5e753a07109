#pragma once

#include <cstddef>

#include "core/backend/backend.h"
#include "core/model/config/model_config.h"
#include "core/model/decoder/decoder_weights.h"

namespace foretoken {

/// What gated delta layers do in place of attention: rows through the layer's heads, whose states
/// remember the rows before, then each head normalised and gated. Owns the room that it takes.
class DeltaMixer {
 public:
  /// Makes room for that many rows of any layer.
  void GrowTo(std::size_t rows, const ModelConfig& config);

  /// out [rows, value_width] for rows x [rows, hidden]; `number` is that of the layer among those
  /// of its kind.
  void Mix(const LayerSpec& spec, const LayerWeights& layer, const NormSpec& norm, int number,
           const float* x, const BatchPlan& plan, Backend* backend, KvStore& kv, float* out);

 private:
  Buffer inputs_;  // [rows, row_width]
  Buffer heads_;   // [rows, 2 * value_width]: gates, then what heads have read.
};

}  // namespace foretoken
