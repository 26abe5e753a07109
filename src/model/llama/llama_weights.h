#pragma once

#include <vector>

#include "backend/backend.h"
#include "model/llama/llama.h"

namespace foretoken {

/// The packed weights of one decoder layer. Norm gains are float32.
struct LlamaLayerWeights {
  Buffer attention_norm;
  Matrix qkv;  ///< [row_width, hidden]: all query heads, then keys, then values.
  Matrix output;
  Buffer mlp_norm;
  Matrix gate_up;  ///< [2 * intermediate, hidden]: gate, then up.
  Matrix down;
};

struct LlamaModel::Weights {
  Matrix embedding;
  std::vector<LlamaLayerWeights> layers;
  Buffer final_norm;
  Matrix lm_head;  ///< Empty where the embedding table is the lm head too.
};

}  // namespace foretoken
