#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/drafters/learned_draft.h"
#include "core/model/drafters/own_drafter.h"
#include "core/model/families/family.h"
#include "core/model/heads/read_heads.h"
#include "core/weights/gguf/gguf_file.h"
#include "core/weights/safetensors.h"
#include "foretoken/speculation.h"

namespace {

using foretoken::Checkpoint;
using foretoken::LearnedDraft;
using foretoken::ModelConfig;
using foretoken::Result;
using foretoken::Token;

ModelConfig SmallTarget() {
  return foretoken::LlamaConfig({.hidden = 4,
                                 .intermediate = 6,
                                 .layers = 7,
                                 .heads = 2,
                                 .kv_heads = 1,
                                 .head_dim = 2,
                                 .vocabulary = 8,
                                 .max_positions = 16});
}

// The same, of a family whose models have a layer that guesses further tokens.
ModelConfig SmallQwen() {
  ModelConfig config = SmallTarget();
  config.family = foretoken::kQwen35.name;
  for (foretoken::LayerSpec& layer : config.layers) {
    layer.attention.qk_norm = foretoken::AttentionSpec::QkNorm::kEachHead;
    layer.attention.output_gate = true;
  }
  return config;
}

Result<Checkpoint> FolderOf(std::string_view config, std::span<const std::uint8_t> weights) {
  FT_ASSIGN_OR_RETURN(auto contents, foretoken::ParseSafetensors(std::as_bytes(weights), "fuzz"));
  Checkpoint folder{.path = "fuzz"};
  folder.config = {.json = std::string(config), .where = "fuzz"};
  folder.tensors = std::move(contents.tensors);
  folder.others = std::move(contents.others);
  return folder;
}

Result<Checkpoint> FileOf(std::span<const std::uint8_t> data) {
  FT_ASSIGN_OR_RETURN(auto contents, foretoken::ParseGguf(std::as_bytes(data), "fuzz"));
  Checkpoint file{.path = "fuzz"};
  file.config.where = "fuzz";
  file.tensors = std::move(contents.tensors);
  file.others = std::move(contents.others);
  file.gguf = std::move(contents.metadata);
  return file;
}

// What of a model's files is its drafter: without a configuration these are a model's.
std::string_view OwnDrafter(const Checkpoint& files) {
  if (files.gguf || !files.config.json.empty()) return "";
  const auto first = files.tensors.begin();
  return first != files.tensors.end() && first->first.starts_with("medusa") ? "medusa" : "mtp";
}

ModelConfig TargetOf(const Checkpoint& files) {
  const bool qwen = OwnDrafter(files) == "mtp" && !foretoken::HasExtraHeads(files);
  return qwen ? SmallQwen() : SmallTarget();
}

Result<LearnedDraft> Read(Checkpoint files, const ModelConfig& target_config) {
  static const std::vector<std::byte> table(std::size_t{8} * 4 * 4);
  const foretoken::TensorView tensor{foretoken::WeightFormat::kF32, {8, 4}, table.data()};
  Checkpoint target{.path = "target"};
  const foretoken::TensorView norm{foretoken::WeightFormat::kF32, {4}, table.data()};
  target.tensors = {
      {"embedding.weight", tensor}, {"head.weight", tensor}, {"output_norm.weight", norm}};
  const std::string_view own = OwnDrafter(files);
  return foretoken::ReadDrafter(own, std::move(files), target, target_config);
}

}  // namespace

// A drafter's folder: its config.json, a zero byte, and the weights; or its GGUF file. One that is
// accepted reads what the target keeps, and drafts tokens of its own only.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t config = text.find('\0');
  if (config == text.npos) return 0;
  auto files = text.starts_with("GGUF")
                   ? FileOf({data, size})
                   : FolderOf(text.substr(0, config), std::span(data, size).subspan(config + 1));
  if (!files.ok()) {
    if (files.error().message.empty()) std::abort();
    return 0;
  }
  const ModelConfig target = TargetOf(*files);
  const Result<LearnedDraft> draft = Read(std::move(files).value(), target);
  if (!draft.ok()) {
    if (draft.error().message.empty()) std::abort();
    return 0;
  }
  const foretoken::FeatureSpec& feature = draft->config.feature;
  if (!feature.there() || feature.points.empty() || feature.tapped != target.hidden) std::abort();
  const foretoken::ParallelSpec& parallel = draft->config.parallel;
  if (parallel.there() &&
      (parallel.mask_token < 0 || parallel.mask_token >= draft->config.embeddings() ||
       parallel.block > foretoken::kMaxProposal + 1)) {
    std::abort();
  }
  for (const int point : feature.points) {
    if (point < -1 || point > target.layer_count()) std::abort();
  }
  if (feature.has_heads() && (feature.heads < 1 || feature.heads > foretoken::kMaxProposal)) {
    std::abort();
  }
  if (draft->config.embeddings() != target.vocabulary) std::abort();
  if (draft->translation == nullptr) {
    return draft->config.vocabulary == target.vocabulary ? 0 : (std::abort(), 0);
  }
  if (draft->translation->said.size() != static_cast<std::size_t>(target.vocabulary)) std::abort();
  for (const Token token : draft->translation->said) {
    if (token >= draft->config.vocabulary) std::abort();
  }
  return 0;
}
