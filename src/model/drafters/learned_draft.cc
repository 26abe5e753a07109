#include "model/drafters/learned_draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "model/drafters/drafted_tokens.h"
#include "model/drafters/drafter_kind.h"
#include "model/families/family.h"
#include "model/families/read_config.h"
#include "model/model_weights.h"

namespace foretoken {
namespace {

using Json = ConfigFields::Json;

Json ParseConfig(const Checkpoint& folder) {
  return Json::parse(folder.config.json, nullptr, /*allow_exceptions=*/false);
}

// How a drafter's folder calls its tensors. Some call the first layer "midlayer", and some put
// "model." before all names.
struct Names {
  const DrafterKind* kind = nullptr;
  const Family* family = nullptr;
  bool midlayer = false;

  static std::string Replaced(std::string_view name, std::string_view from, std::string_view to) {
    if (!name.starts_with(from)) return std::string(name);
    return fmt::format("{}{}", to, name.substr(from.size()));
  }

  // "feature.norm.weight" of "layers.0.hidden_norm.weight", and the other way round.
  std::string Beside(std::string_view name, std::string_view DrafterTensor::*from,
                     std::string_view DrafterTensor::*to) const {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return {};
    const std::string_view stem = name.substr(0, dot);
    for (const DrafterTensor& tensor : kind->tensors) {
      if (stem == tensor.*from) return fmt::format("{}{}", tensor.*to, name.substr(dot));
      const std::string_view begin = (tensor.*from).substr(0, (tensor.*from).size() - 1);
      if (!(tensor.*from).ends_with(".*") || !stem.starts_with(begin)) continue;
      const std::string_view other = (tensor.*to).substr(0, (tensor.*to).size() - 1);
      return fmt::format("{}{}", other, name.substr(begin.size()));
    }
    return {};
  }

  std::string Ours(std::string_view in_file) const {
    const std::string plain = Replaced(Replaced(in_file, "model.", ""), "midlayer.", "layers.0.");
    const std::string beside = Beside(plain, &DrafterTensor::folder, &DrafterTensor::ours);
    if (!beside.empty() || !plain.starts_with("layers.")) return beside;
    return OurName(*family, /*gguf=*/false, "model." + plain);
  }

  std::string InFile(std::string_view ours) const {
    std::string name = Beside(ours, &DrafterTensor::ours, &DrafterTensor::folder);
    if (name.empty()) name = Replaced(NameInFile(*family, /*gguf=*/false, ours), "model.", "");
    return midlayer ? Replaced(name, "layers.0.", "midlayer.") : name;
  }
};

// Calls tensors by our names. One that the kind does not have might change what is computed.
Status Rename(const Names& names, Checkpoint* folder) {
  const auto unknown = [&](std::string_view name) {
    return InvalidInput(fmt::format("{}: has tensor '{}', which is none of {}",
                                    folder->path.string(), Printable(name), names.kind->name));
  };
  for (const auto& [name, tensor] : folder->tensors) {
    // Frequencies, which config.json says too.
    if (!name.ends_with(".inv_freq") && names.Ours(name).empty()) return unknown(name);
  }
  for (const auto& [name, other] : folder->others) {
    if (name != "d2t" && name != "t2d") return unknown(name);
  }
  const auto named = std::ranges::count_if(
      folder->tensors, [&](const auto& tensor) { return !names.Ours(tensor.first).empty(); });
  folder->Rename([&](std::string_view name) { return names.Ours(name); },
                 [names](std::string_view name) { return names.InFile(name); });
  if (std::ssize(folder->tensors) == named) return {};
  return InvalidInput(
      fmt::format("{}: has a tensor twice, under two names for it", folder->path.string()));
}

// The tensor `from` of the target becomes `to` of the drafter, which has none of that name.
void Share(const Checkpoint& target, const std::string& from, const std::string& to,
           Checkpoint* draft) {
  const TensorView* tensor = target.Find(from);
  if (tensor == nullptr) return;
  draft->tensors.emplace(to, *tensor);
  draft->names_in_files.emplace(to, target.NameInFile(from));
  if (const auto found = target.arranged.find(from); found != target.arranged.end()) {
    draft->arranged.emplace(to, found->second);
  }
  if (const auto found = target.requantized_from.find(from);
      found != target.requantized_from.end()) {
    draft->requantized_from.emplace(to, found->second);
  }
  for (const auto& file : target.files) {
    if (std::ranges::find(draft->files, file) == draft->files.end()) draft->files.push_back(file);
  }
}

// Shares what the drafter has not of its own: the embeddings, and the head where it says all of the
// target's tokens.
Status ShareTables(const Checkpoint& target, const ModelConfig& target_config,
                   LearnedDraft* draft) {
  constexpr const char* kEmbedding = "embedding.weight";
  constexpr const char* kHead = "head.weight";
  Checkpoint& checkpoint = draft->checkpoint;
  const ModelConfig& config = draft->config;
  const bool own_head = checkpoint.Find(kHead) != nullptr;
  for (const char* name : {kEmbedding, kHead}) {
    if (checkpoint.Find(name) != nullptr) continue;
    if (name == kHead && config.vocabulary != target_config.vocabulary) continue;
    if (config.hidden == target_config.hidden) continue;
    return InvalidInput(fmt::format(
        "{}: lacks tensor {}, and the target's has {} numbers for a token, where {} are needed",
        checkpoint.path.string(), checkpoint.NameInFile(name), target_config.hidden,
        config.hidden));
  }
  if (checkpoint.Find(kEmbedding) == nullptr) Share(target, kEmbedding, kEmbedding, &checkpoint);
  if (!own_head && config.vocabulary == target_config.vocabulary) {
    Share(target, target_config.tied_embeddings ? kEmbedding : kHead, kHead, &checkpoint);
  }
  return {};
}

const DrafterKind& KindOf(const Json& json) {
  return json.contains("speculators_model_type") || json.contains("draft_vocab_size") ? kEagle3
                                                                                      : kEagle1;
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
  // The class is the drafter's; texts begin and end with the target's tokens.
  for (const char* name : {"architectures", "bos_token_id", "eos_token_id"}) json.erase(name);
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
  const bool midlayer = std::ranges::any_of(folder.tensors, [](const auto& tensor) {
    return tensor.first.starts_with("midlayer.") || tensor.first.starts_with("model.midlayer.");
  });
  draft.checkpoint = std::move(folder);
  const Names names{&kind, FamilyNamed(config.family), midlayer};
  FT_RETURN_IF_ERROR(Rename(names, &draft.checkpoint));
  FT_ASSIGN_OR_RETURN(draft.translation,
                      DraftedTokens(draft.checkpoint, config.vocabulary, target_config));
  FT_RETURN_IF_ERROR(ShareTables(target, target_config, &draft));
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
