#include "model/drafters/learned_draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "model/drafters/drafted_tokens.h"
#include "model/drafters/drafter_kind.h"
#include "model/drafters/drafter_names.h"
#include "model/drafters/shared_tables.h"
#include "model/families/family.h"
#include "model/families/read_config.h"
#include "model/model_weights.h"

namespace foretoken {
namespace {

using Json = ConfigFields::Json;

Json ParseConfig(const Checkpoint& folder) {
  return Json::parse(folder.config.json, nullptr, /*allow_exceptions=*/false);
}

const DrafterKind& KindOf(const Json& json) {
  return json.contains("speculators_model_type") || json.contains("draft_vocab_size") ? kEagle3
                                                                                      : kEagle1;
}

bool HasMidlayer(const Checkpoint& folder) {
  return std::ranges::any_of(folder.tensors, [](const auto& tensor) {
    return tensor.first.starts_with("midlayer.") || tensor.first.starts_with("model.midlayer.");
  });
}

// That of a file may be shorter: rotation goes on behind it.
void CompletePositions(const ModelConfig& target, LearnedDraft* draft) {
  ModelConfig& config = draft->config;
  if (config.max_positions < target.max_positions) {
    draft->notes.push_back(
        fmt::format("the drafter was made for texts of {} tokens, its target is for {}: behind "
                    "them fewer drafts may be accepted",
                    config.max_positions, target.max_positions));
  }
  config.max_positions = target.max_positions;
}

}  // namespace

Result<ModelConfig> DescribeLayers(Json json, const std::string& where, std::string_view family) {
  json["model_type"] = family;
  // The class is the drafter's; texts begin and end with the target's tokens; and there is no model
  // within it.
  for (const char* name : {"architectures", "bos_token_id", "eos_token_id", "text_config"}) {
    json.erase(name);
  }
  FT_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(json.dump(), where));
  config.embedded = config.vocabulary;
  return config;
}

void RefuseUnknownFlags(const Json& json, std::span<const std::string_view> known,
                        ConfigFields* fields) {
  for (const auto& [name, value] : json.items()) {
    if (!value.is_boolean() || !value.get<bool>()) continue;
    if (std::ranges::find(known, name) != known.end()) continue;
    fields->Refuse(fmt::format("{} is true, and what that changes is not known", Printable(name)));
  }
}

bool IsLearnedDraft(const Checkpoint& folder) {
  if (folder.gguf.has_value()) return false;
  const Json json = ParseConfig(folder);
  if (!json.is_object()) return false;
  return json.contains("speculators_model_type") || json.contains("draft_vocab_size") ||
         folder.Find("fc.weight") != nullptr || folder.Find("model.fc.weight") != nullptr;
}

Result<LearnedDraft> ReadLearnedDraft(Checkpoint folder, const Checkpoint& target,
                                      const ModelConfig& target_config) {
  const std::string path = folder.path.string();
  if (!IsLearnedDraft(folder)) {
    return InvalidInput(
        fmt::format("{}: is no folder of a drafter that reads its target's states", path));
  }
  const Json json = ParseConfig(folder);
  const DrafterKind& kind = KindOf(json);
  LearnedDraft draft;
  FT_ASSIGN_OR_RETURN(draft.config,
                      kind.describe(json, folder.config.where, target_config, &draft.notes));
  ModelConfig& config = draft.config;
  if (config.embedded != target_config.vocabulary) {
    return InvalidInput(fmt::format("{}: vocab_size is {}, but the target has {} tokens",
                                    folder.config.where, config.embedded,
                                    target_config.vocabulary));
  }
  if (config.embedded == config.vocabulary) config.embedded = 0;
  config.tied_embeddings = false;
  config.bos = target_config.bos;
  config.eos = target_config.eos;
  CompletePositions(target_config, &draft);
  draft.checkpoint = std::move(folder);
  FT_RETURN_IF_ERROR(NameTensors({.kind = kind.name,
                                  .tensors = kind.tensors,
                                  .family = FamilyNamed(config.family),
                                  .midlayer = HasMidlayer(draft.checkpoint)},
                                 &draft.checkpoint));
  FT_ASSIGN_OR_RETURN(draft.translation,
                      DraftedTokens(draft.checkpoint, config.vocabulary, target_config));
  FT_RETURN_IF_ERROR(ShareTables(target, target_config, config, &draft.checkpoint));
  // Without a norm before the head the file's is not asked for.
  if (!config.feature.output_norm) draft.checkpoint.tensors.erase("output_norm.weight");
  FT_RETURN_IF_ERROR(CheckWeights(draft.checkpoint, config));
  return draft;
}

Result<LearnedDraft> OpenDraft(const std::filesystem::path& path, const Checkpoint& target,
                               const ModelConfig& target_config) {
  FT_ASSIGN_OR_RETURN(Checkpoint folder, Checkpoint::Open(path));
  return ReadLearnedDraft(std::move(folder), target, target_config);
}

}  // namespace foretoken
