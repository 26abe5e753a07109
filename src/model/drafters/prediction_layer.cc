#include "model/drafters/prediction_layer.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "backend/taps.h"
#include "base/printable.h"
#include "model/drafters/drafter_names.h"
#include "model/drafters/shared_tables.h"
#include "model/model_weights.h"

namespace foretoken {
namespace {

constexpr const char* kName = "a layer that guesses further tokens";

constexpr DrafterTensor kTensors[] = {
    {"feature.join", "fc", "nextn.eh_proj"},
    {"feature.token_norm", "pre_fc_norm_embedding", "nextn.enorm"},
    {"feature.norm", "pre_fc_norm_hidden", "nextn.hnorm"},
    {"output_norm", "norm", "nextn.shared_head_norm"},
    {"embedding", "", "nextn.embed_tokens"},
    {"head", "", "nextn.shared_head_head"}};

// What the names of the layer's tensors begin with; empty where there is none.
std::string PrefixOf(const Checkpoint& model) {
  const std::string_view joins = model.gguf.has_value() ? "nextn.eh_proj.weight" : "fc.weight";
  for (const auto& [name, tensor] : model.tensors) {
    if (!name.ends_with(joins)) continue;
    std::string prefix = name.substr(0, name.size() - joins.size());
    if (prefix == "mtp." || model.gguf.has_value()) return prefix;
  }
  return {};
}

}  // namespace

Result<ModelConfig> PredictionLayerOf(const ModelConfig& model, const std::string& where) {
  const auto layer = std::find_if(model.layers.rbegin(), model.layers.rend(),
                                  [](const LayerSpec& each) { return !each.is_recurrent(); });
  if (layer == model.layers.rend()) {
    return InvalidInput(fmt::format(
        "{}: no layer of the model has attention, as that which guesses further tokens must",
        where));
  }
  ModelConfig config = model;
  config.layers = {*layer};
  config.tied_embeddings = false;
  config.feature = {.join = FeatureSpec::Join::kProjected,
                    .points = {TapShape::kFinalState},
                    .tapped = model.hidden,
                    .normed = true,
                    .leaves_normed = true};
  return config;
}

bool HasPredictionLayer(const Checkpoint& model) { return !PrefixOf(model).empty(); }

Result<LearnedDraft> ReadPredictionLayer(Checkpoint model, const Checkpoint& target,
                                         const ModelConfig& target_config) {
  const std::string path = model.path.string();
  const std::string prefix = PrefixOf(model);
  if (prefix.empty()) {
    return InvalidInput(
        fmt::format("{}: has no layer that guesses further tokens: tensors mtp.* of a folder, "
                    "blk.N.nextn.* of a GGUF file",
                    path));
  }
  const bool gguf = model.gguf.has_value();
  const std::string expected = fmt::format("blk.{}.", target_config.layer_count());
  if (gguf && prefix != expected) {
    return InvalidInput(
        fmt::format("{}: the layer that guesses further tokens is {}*, but that of a target of {} "
                    "layers is {}*",
                    path, Printable(prefix), target_config.layer_count(), expected));
  }
  const auto known = {kQwen3Next.name, kQwen35.name, kQwen35Moe.name};
  if (std::ranges::find(known, target_config.family) == known.end()) {
    return InvalidInput(
        fmt::format("{}: has a layer that guesses further tokens, which of {} models is not "
                    "supported",
                    path, target_config.family));
  }
  LearnedDraft draft;
  FT_ASSIGN_OR_RETURN(draft.config, PredictionLayerOf(target_config, path));
  draft.config.architecture = kName;
  const auto of_model = [&](const auto& tensor) { return !tensor.first.starts_with(prefix); };
  std::erase_if(model.tensors, of_model);
  std::erase_if(model.others, of_model);
  std::erase_if(model.arranged, of_model);
  const Family& family = *FamilyNamed(draft.config.family);
  FT_RETURN_IF_ERROR(NameTensors(
      {.kind = kName, .tensors = kTensors, .family = &family, .prefix = prefix, .gguf = gguf},
      &model));
  model.gains_less_one = !gguf && family.folder_gains_less_one;
  FT_RETURN_IF_ERROR(ShareTables(target, target_config, draft.config, &model));
  FT_RETURN_IF_ERROR(CheckWeights(model, draft.config));
  draft.checkpoint = std::move(model);
  return draft;
}

Result<LearnedDraft> OpenPredictionLayer(const std::filesystem::path& path,
                                         const Checkpoint& target,
                                         const ModelConfig& target_config) {
  FT_ASSIGN_OR_RETURN(Checkpoint model, Checkpoint::Open(path));
  return ReadPredictionLayer(std::move(model), target, target_config);
}

}  // namespace foretoken
