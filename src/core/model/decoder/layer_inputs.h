#pragma once

#include <cstddef>
#include <span>

#include "core/backend/backend.h"
#include "core/model/decoder/decoder_weights.h"

namespace foretoken {

/// What each layer is given of every token besides the residual stream: a row of a table of its own
/// and a projection of the token's embedding, added up. Owns the room that it takes.
class LayerInputs {
 public:
  /// Makes room for that many rows.
  void GrowTo(std::size_t rows, const ModelConfig& config);

  /// Makes the inputs of all layers for a part of a pass, of its tokens and of the stream's first
  /// states [tokens, hidden].
  void Prepare(const ModelConfig& config, const LayerInputWeights& weights,
               std::span<const Token> tokens, const float* hidden, Backend* backend);

  /// The inputs of a layer, each times what the layer's gate makes of the stream
  /// [rows, layer_input]; valid until the next call.
  const float* Gate(const ModelConfig& config, const LinearWeights& gate, Activation activation,
                    int layer, const float* hidden, int rows, Backend* backend);

 private:
  Buffer inputs_;   // [rows, layers, layer_input]
  Buffer rows_;     // [rows, layers, layer_input], of the table.
  Buffer gates_;    // [rows, layer_input]
  Buffer gate_up_;  // [rows, 2 * layer_input]: the gates, then the layer's inputs.
};

}  // namespace foretoken
