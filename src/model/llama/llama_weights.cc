#include "model/llama/llama_weights.h"

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

std::size_t LlamaWeights::bytes_of_pass() const {
  std::size_t bytes = head().data.bytes() + tensors.final_norm.bytes();
  for (const LlamaLayerWeights& layer : tensors.layers) bytes += layer.bytes();
  return bytes;
}

}  // namespace foretoken
