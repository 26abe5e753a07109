#include "model/drafters/prediction_layer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "backend/taps.h"
#include "model/drafters/drafter_names.h"
#include "model/drafters/shared_tables.h"
#include "model/model_weights.h"

namespace foretoken {
namespace {

constexpr std::string_view kPrefix = "mtp.";

constexpr DrafterTensor kTensors[] = {{"feature.join", "fc"},
                                      {"feature.token_norm", "pre_fc_norm_embedding"},
                                      {"feature.norm", "pre_fc_norm_hidden"},
                                      {"output_norm", "norm"}};

// The model's last layer with attention, behind a projection of token and feature.
Result<ModelConfig> Describe(const ModelConfig& target, const std::string& path) {
  const auto known = {kQwen3Next.name, kQwen35.name, kQwen35Moe.name};
  if (std::ranges::find(known, target.family) == known.end()) {
    return InvalidInput(
        fmt::format("{}: has a layer that guesses further tokens, which of {} models is not "
                    "supported",
                    path, target.family));
  }
  const auto layer = std::find_if(target.layers.rbegin(), target.layers.rend(),
                                  [](const LayerSpec& each) { return !each.is_recurrent(); });
  if (layer == target.layers.rend()) {
    return InvalidInput(fmt::format(
        "{}: no layer of the model has attention, as that which guesses further tokens must",
        path));
  }
  ModelConfig config = target;
  config.layers = {*layer};
  config.tied_embeddings = false;
  config.feature = {.join = FeatureSpec::Join::kProjected,
                    .points = {TapShape::kFinalState},
                    .tapped = target.hidden,
                    .normed = true,
                    .leaves_normed = true};
  return config;
}

}  // namespace

bool HasPredictionLayer(const Checkpoint& folder) {
  return !folder.gguf.has_value() && folder.Find("mtp.fc.weight") != nullptr;
}

Result<LearnedDraft> ReadPredictionLayer(Checkpoint folder, const Checkpoint& target,
                                         const ModelConfig& target_config) {
  const std::string path = folder.path.string();
  if (!HasPredictionLayer(folder)) {
    return InvalidInput(fmt::format(
        "{}: has no layer that guesses further tokens, tensors mtp.* of a folder", path));
  }
  LearnedDraft draft;
  FT_ASSIGN_OR_RETURN(draft.config, Describe(target_config, path));
  const auto of_model = [](const auto& tensor) { return !tensor.first.starts_with(kPrefix); };
  std::erase_if(folder.tensors, of_model);
  std::erase_if(folder.others, of_model);
  std::erase_if(folder.arranged, of_model);
  const Family& family = *FamilyNamed(draft.config.family);
  FT_RETURN_IF_ERROR(NameTensors({.kind = "a layer that guesses further tokens",
                                  .tensors = kTensors,
                                  .family = &family,
                                  .prefix = kPrefix},
                                 &folder));
  folder.gains_less_one = family.folder_gains_less_one;
  FT_RETURN_IF_ERROR(ShareTables(target, target_config, draft.config, &folder));
  FT_RETURN_IF_ERROR(CheckWeights(folder, draft.config));
  draft.checkpoint = std::move(folder);
  return draft;
}

Result<LearnedDraft> OpenPredictionLayer(const std::filesystem::path& path,
                                         const Checkpoint& target,
                                         const ModelConfig& target_config) {
  FT_ASSIGN_OR_RETURN(Checkpoint folder, Checkpoint::Open(path));
  return ReadPredictionLayer(std::move(folder), target, target_config);
}

}  // namespace foretoken
