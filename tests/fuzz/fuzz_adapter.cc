#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/adapter/adapter.h"
#include "core/weights/gguf/gguf_file.h"
#include "core/weights/safetensors.h"

namespace {

using foretoken::Adapter;
using foretoken::AdapterFile;
using foretoken::Result;

// Small, of the family whose rows of queries and keys GGUF files have in another order.
foretoken::ModelConfig SmallModel() {
  foretoken::ModelConfig config = foretoken::LlamaConfig({.hidden = 4,
                                                          .intermediate = 6,
                                                          .layers = 2,
                                                          .heads = 2,
                                                          .kv_heads = 1,
                                                          .head_dim = 2,
                                                          .vocabulary = 8,
                                                          .max_positions = 16});
  config.family = "llama";
  return config;
}

std::span<const std::byte> Bytes(std::span<const std::uint8_t> data) { return std::as_bytes(data); }

Result<Adapter> ReadPeft(std::string_view config, std::span<const std::uint8_t> weights,
                         const foretoken::ModelConfig& model) {
  FT_ASSIGN_OR_RETURN(const auto contents, foretoken::ParseSafetensors(Bytes(weights), "fuzz"));
  FT_ASSIGN_OR_RETURN(const AdapterFile file,
                      foretoken::PeftAdapter(contents.tensors, config, "fuzz",
                                             *foretoken::FamilyNamed(model.family)));
  return foretoken::MakeAdapter(file, model);
}

Result<Adapter> ReadGguf(std::span<const std::uint8_t> data, const foretoken::ModelConfig& model) {
  FT_ASSIGN_OR_RETURN(const auto contents, foretoken::ParseGguf(Bytes(data), "fuzz"));
  FT_ASSIGN_OR_RETURN(AdapterFile file,
                      foretoken::GgufAdapter(contents.tensors, contents.metadata, "fuzz",
                                             *foretoken::FamilyNamed(model.family)));
  file.alternating_heads = true;
  return foretoken::MakeAdapter(file, model);
}

}  // namespace

// A GGUF file, or a PEFT folder's two files: its configuration, a zero byte, and the weights. An
// adapter that is accepted has the shapes of the model's matrices.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const foretoken::ModelConfig model = SmallModel();
  const std::span all(data, size);
  const bool gguf = std::string_view(reinterpret_cast<const char*>(data), size).starts_with("GGUF");
  const void* end = size == 0 ? nullptr : std::memchr(data, 0, size);
  if (!gguf && end == nullptr) return 0;
  const std::size_t config = gguf ? 0 : static_cast<const std::uint8_t*>(end) - data;
  const Result<Adapter> adapter = gguf ? ReadGguf(all, model)
                                       : ReadPeft({reinterpret_cast<const char*>(data), config},
                                                  all.subspan(config + 1), model);
  if (!adapter.ok()) {
    if (adapter.error().message.empty()) std::abort();
    return 0;
  }
  constexpr std::size_t kOutputs[] = {8, 4, 12, 4};
  constexpr std::size_t kInputs[] = {4, 4, 4, 6};
  if (adapter->layers.size() != 2) std::abort();
  for (const auto& layer : adapter->layers) {
    for (std::size_t i = 0; i < foretoken::kAdaptedMatrices; ++i) {
      const std::size_t rank = layer[i].rank;
      if (layer[i].down.size() != rank * kInputs[i]) std::abort();
      if (layer[i].up.size() != rank * kOutputs[i]) std::abort();
    }
  }
  return 0;
}
