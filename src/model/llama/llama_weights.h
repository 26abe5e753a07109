#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "model/model_weights.h"

namespace foretoken {

/// The packed weights of one decoder layer. Norm gains are float32.
struct LlamaLayerWeights {
  Buffer attention_norm;
  Matrix qkv;  ///< [row_width, hidden]: all query heads, then keys, then values.
  Matrix output;
  Buffer mlp_norm;
  Matrix gate_up;  ///< [2 * intermediate, hidden]: gate, then up.
  Matrix down;

  std::size_t bytes() const;
};

/// The packed weights of a whole decoder.
struct LlamaTensors {
  Matrix embedding;
  std::vector<LlamaLayerWeights> layers;
  Buffer final_norm;
  Matrix lm_head;  ///< Empty where the embedding table is the lm head too.
};

/// The weights of a Llama-family decoder and what else its passes only read.
class LlamaWeights final : public ModelWeights, public std::enable_shared_from_this<LlamaWeights> {
 public:
  /// Of `packed` as `backend` packs.
  LlamaWeights(const ModelConfig& config, const Backend& backend, LlamaTensors packed);

  const ModelConfig& config() const override { return config_; }
  std::unique_ptr<Model> MakeModel(Backend* backend) const override;

  const Matrix& head() const {
    return config_.tied_embeddings ? tensors.embedding : tensors.lm_head;
  }
  /// As Model::weight_bytes.
  std::size_t bytes_of_pass() const;

  const LlamaTensors tensors;
  const RopeTable rope;

 private:
  ModelConfig config_;
  std::string_view layout_;
};

}  // namespace foretoken
