#include "core/model/drafters/learned_draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/model/drafters/dflash_gguf.h"
#include "core/model/drafters/drafted_tokens.h"
#include "core/model/drafters/drafter_kind.h"
#include "core/model/drafters/drafter_names.h"
#include "core/model/drafters/eagle3_gguf.h"
#include "core/model/drafters/shared_tables.h"
#include "core/model/families/family.h"
#include "core/model/heads/hydra.h"
#include "core/model/heads/medusa.h"
#include "core/model/model_weights.h"

namespace foretoken {
namespace {

Json ParseConfig(const Checkpoint& folder) { return Json::Parse(folder.config.json); }

const DrafterKind& KindOf(const Json& json) {
  if (json.contains("speculators_model_type")) {
    const Json& type = json["speculators_model_type"];
    for (const auto& [name, kind] :
         {std::pair("mtp", &kMtp), std::pair("dflash", &kDflash), std::pair("dspark", &kDspark),
          std::pair("peagle", &kPeagle)}) {
      if (type == name) return *kind;
    }
    return kEagle3;
  }
  // The authors of DSpark have at the top what others keep within `dflash_config`.
  if (json.contains("markov_rank")) return kDspark;
  if (json.contains("dflash_config")) {
    const Json& own = json["dflash_config"];
    const bool dspark =
        own.is_object() && own.contains("projector_type") && own["projector_type"] == "dspark";
    return dspark ? kDspark : kDflash;
  }
  return json.contains("draft_vocab_size") ? kEagle3 : kEagle1;
}

bool HasMidlayer(const Checkpoint& folder) {
  return std::ranges::any_of(folder.tensors, [](const auto& tensor) {
    return tensor.first.starts_with("midlayer.") || tensor.first.starts_with("model.midlayer.");
  });
}

// P-EAGLE's feature of masks is a parameter [1, 1, width] without an ending: a weight [width] here.
void NameMask(Checkpoint* folder) {
  const auto found = folder->tensors.find("mask_hidden");
  if (found == folder->tensors.end()) return;
  TensorView mask = found->second;
  mask.shape = {mask.elements()};
  folder->tensors.erase(found);
  folder->tensors.emplace("mask_hidden.weight", std::move(mask));
}

// The file's max_positions may be less than the target's: rotation goes on behind them.
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

bool IsLearnedDraft(const Checkpoint& folder) {
  if (folder.gguf.has_value()) return IsEagle3Gguf(folder) || IsDflashGguf(folder);
  const Json json = ParseConfig(folder);
  if (!json.is_object()) return false;
  if (IsMedusa(folder, json) || IsHydra(folder, json)) return true;
  return json.contains("speculators_model_type") || json.contains("draft_vocab_size") ||
         folder.Find("fc.weight") != nullptr || folder.Find("model.fc.weight") != nullptr;
}

Result<LearnedDraft> ReadLearnedDraft(Checkpoint folder, const Checkpoint& target,
                                      const ModelConfig& target_config) {
  const std::string path = folder.path.string();
  if (!IsLearnedDraft(folder)) {
    return Invalid("{}: is no drafter that reads its target's states", path);
  }
  if (const Json said = ParseConfig(folder); IsMedusa(folder, said)) {
    return ReadMedusa(std::move(folder), said, target_config);
  } else if (IsHydra(folder, said)) {
    return ReadHydra(std::move(folder), said, target, target_config);
  }
  const bool gguf = folder.gguf.has_value();
  if (gguf) {
    FT_ASSIGN_OR_RETURN(folder.config.json, IsDflashGguf(folder)
                                                ? DflashFromGguf(folder, target_config.vocabulary)
                                                : Eagle3FromGguf(folder));
  }
  const Json json = ParseConfig(folder);
  const DrafterKind& kind = KindOf(json);
  LearnedDraft draft;
  FT_ASSIGN_OR_RETURN(draft.config,
                      kind.describe(json, folder.config.where, target_config, &draft.notes));
  ModelConfig& config = draft.config;
  config.architecture = kind.name;
  if (config.embedded != target_config.vocabulary) {
    return Invalid("{}: vocab_size is {}, but the target has {} tokens", folder.config.where,
                   config.embedded, target_config.vocabulary);
  }
  if (config.embedded == config.vocabulary) config.embedded = 0;
  config.tied_embeddings = false;
  config.bos = target_config.bos;
  config.eos = target_config.eos;
  CompletePositions(target_config, &draft);
  draft.checkpoint = std::move(folder);
  if (config.feature.masked) NameMask(&draft.checkpoint);
  const Family& family = *FamilyNamed(config.family);
  FT_RETURN_IF_ERROR(NameTensors({.kind = kind.name,
                                  .tensors = kind.tensors,
                                  .family = &family,
                                  .prefix = std::string(kind.prefix),
                                  .midlayer = HasMidlayer(draft.checkpoint),
                                  .gguf = gguf},
                                 &draft.checkpoint));
  draft.checkpoint.gains_less_one = !gguf && family.folder_gains_less_one;
  draft.checkpoint.alternating_heads = gguf && family.neighbours == Neighbours::kInGguf;
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
