#include "model/llama/llama_weights.h"

#include "base/check.h"
#include "model/llama/llama_model.h"
#include "model/llama/rope.h"

namespace foretoken {

std::size_t LlamaLayerWeights::bytes() const {
  return attention_norm.bytes() + qkv.data.bytes() + output.data.bytes() + mlp_norm.bytes() +
         gate_up.data.bytes() + down.data.bytes();
}

LlamaWeights::LlamaWeights(const ModelConfig& config, const Backend& backend, LlamaTensors packed)
    : tensors(std::move(packed)),
      rope(MakeRopeTable(config)),
      config_(config),
      layout_(backend.layout()) {}

std::unique_ptr<Model> LlamaWeights::MakeModel(Backend* backend) const {
  FT_CHECK(backend->layout() == layout_, "weights are packed as {}, but {} reads {}", layout_,
           backend->name(), backend->layout());
  return std::make_unique<LlamaModel>(shared_from_this(), backend);
}

std::size_t LlamaWeights::bytes_of_pass() const {
  std::size_t bytes = head().data.bytes() + tensors.final_norm.bytes();
  for (const LlamaLayerWeights& layer : tensors.layers) bytes += layer.bytes();
  return bytes;
}

}  // namespace foretoken
