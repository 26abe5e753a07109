#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/numbers/integers.h"
#include "core/backend/backend.h"
#include "core/model/config/model_config.h"
#include "core/model/decoder/float_buffer.h"

namespace foretoken {

/// The widest of a decoder's layers.
struct DecoderWidths {
  explicit DecoderWidths(const ModelConfig& config) : hidden(config.hidden) {
    for (const LayerSpec& layer : config.layers) {
      const AttentionSpec& attention = layer.attention;
      qkv = std::max(qkv, static_cast<int>(attention.shape().row_width()));
      attended = std::max({attended, attention.attended_width(), attention.output_width()});
      if (layer.is_recurrent()) attended = std::max(attended, layer.delta.value_width());
      if (attention.output_gate) gated = std::max(gated, attention.query_width());
      if (layer.mlp.apart) apart = 2 * config.hidden;
      if (layer.mlp.has_experts()) continue;  // They have room of their own.
      intermediate = std::max(intermediate, layer.mlp.intermediate);
    }
  }

  int hidden = 0;
  int qkv = 0;
  int attended = 0;
  int gated = 0;
  int intermediate = 0;
  int apart = 0;
};

/// Activations of one part of a decoder's pass, each [rows, its width].
struct DecoderWorkspace {
  std::vector<RowPlace> places;
  /// The place of the last row of each row's block: how far bidirectional attention sees.
  std::vector<RowPlace> seen;
  std::vector<Token> tokens;
  Buffer hidden;    ///< The residual stream.
  Buffer normed;    ///< [rows, hidden]
  Buffer qkv;       ///< [rows, row_width]
  Buffer attended;  ///< [rows, heads * head_dim]
  Buffer gates;     ///< [rows, heads * head_dim]: the gates of what attention has made.
  Buffer gated;     ///< [rows, 2 * heads * head_dim]: gates beside what they are of.
  Buffer gate_up;   ///< [rows, 2 * intermediate]
  Buffer mixed;     ///< [rows, intermediate]
  Buffer apart;     ///< [2, rows, hidden]: what experts read that are apart.
  Buffer added;     ///< [rows, hidden]: what is changed before it is added to the stream.
  Buffer logits;    ///< [wanted rows, vocabulary]
  Buffer maxima;    ///< [wanted rows, groups of the vocabulary]
  Buffer states;    ///< [rows that want theirs, hidden]

  void GrowTo(std::size_t rows, const DecoderWidths& widths) {
    places.reserve(rows);
    seen.reserve(rows);
    tokens.reserve(rows);
    const std::size_t hidden_width = widths.hidden;
    GrowFloats(hidden, rows * hidden_width);
    GrowFloats(normed, rows * hidden_width);
    GrowFloats(added, rows * hidden_width);
    GrowFloats(qkv, rows * widths.qkv);
    GrowFloats(attended, rows * widths.attended);
    GrowFloats(gates, rows * widths.gated);
    GrowFloats(gated, rows * 2 * Size(widths.gated));
    GrowFloats(gate_up, rows * 2 * Size(widths.intermediate));
    GrowFloats(apart, rows * widths.apart);
    GrowFloats(mixed, rows * widths.intermediate);
  }
};

}  // namespace foretoken
