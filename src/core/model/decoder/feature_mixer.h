#pragma once

#include <cstddef>
#include <span>

#include "core/backend/backend.h"
#include "core/model/config/model_config.h"
#include "core/model/decoder/decoder_weights.h"
#include "core/model/decoder/float_buffer.h"
#include "core/model/model.h"

namespace foretoken {

/// Makes the beginning of a learned drafter's rows of their tokens and features (FeatureSpec).
/// Keeps the room for that.
class FeatureMixer {
 public:
  void GrowTo(std::size_t rows, const ModelConfig& config);

  /// `stream` [rows, hidden] has the tokens' embeddings, and gets what the residual stream begins
  /// as.
  void Begin(const ModelConfig& config, const FeatureWeights& weights,
             std::span<const ForwardRow> rows, Backend* backend, float* stream);

  /// What rows of features alone are to every layer's keys and values, [rows, hidden], valid until
  /// the next call: Join::kContext.
  const float* Context(const ModelConfig& config, const FeatureWeights& weights,
                       std::span<const ForwardRow> rows, Backend* backend);

  /// What the first layer's attention reads, [rows, 2 * hidden]: Join::kAttended.
  const float* attended() const { return pairs_.as<float>(); }

 private:
  void MakeFeatures(const ModelConfig& config, const FeatureWeights& weights,
                    std::span<const ForwardRow> rows, Backend* backend);

  Buffer kept_;      // [rows with one, tap_width]
  Buffer reduced_;   // [rows with one, hidden]
  Buffer features_;  // [rows, hidden]
  Buffer normed_;    // [rows, hidden]
  Buffer pairs_;     // [rows, 2 * hidden]
};

}  // namespace foretoken
