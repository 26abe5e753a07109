#include "model/drafters/medusa.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/taps.h"
#include "base/printable.h"
#include "foretoken/speculation.h"
#include "model/drafters/drafter_kind.h"
#include "model/model_weights.h"

namespace foretoken {
namespace {

using Json = ConfigFields::Json;

constexpr std::string_view kFlags[] = {"tie_word_embeddings", "use_cache"};

// How many heads there are, each of a sequence of so many blocks and a matrix.
struct Counts {
  int heads = 0;
  int blocks = 0;
};

std::string BlockName(int head, int block) { return fmt::format("{}.{}.linear", head, block); }
std::string MatrixName(int head, int blocks) { return fmt::format("{}.{}.weight", head, blocks); }

Result<Counts> Count(const Checkpoint& folder) {
  const auto there = [&](const std::string& name) { return folder.Find(name) != nullptr; };
  Counts counts;
  while (there(BlockName(0, counts.blocks) + ".weight")) ++counts.blocks;
  while (there(MatrixName(counts.heads, counts.blocks))) ++counts.heads;
  const std::string path = folder.path.string();
  if (counts.heads == 0) {
    return InvalidInput(
        fmt::format("{}: lacks tensor {}, the matrix of the first of Medusa's heads", path,
                    MatrixName(0, counts.blocks)));
  }
  if (counts.heads > kMaxProposal) {
    return InvalidInput(fmt::format("{}: has {} heads, but no more than {} tokens are drafted",
                                    path, counts.heads, kMaxProposal));
  }
  return counts;
}

// Of the first head; that others are like it LoadWeights checks.
Status CheckSizes(const Checkpoint& folder, const Counts& counts, const ModelConfig& target) {
  const std::string name = MatrixName(0, counts.blocks);
  const std::vector<std::int64_t>& shape = folder.Find(name)->shape;
  if (shape == std::vector<std::int64_t>{target.vocabulary, target.hidden}) return {};
  return InvalidInput(fmt::format("{}: tensor {} is [{}], but of heads for this target [{}, {}]",
                                  folder.path.string(), name, fmt::join(shape, ", "),
                                  target.vocabulary, target.hidden));
}

using Names = std::map<std::string, std::string, std::less<>>;

// Calls tensors as LoadWeights asks for them. One that is none of a head's is refused.
Status NameHeads(const Counts& counts, Checkpoint* folder) {
  Names ours;
  Names in_file;
  const auto add = [&](const std::string& file, const std::string& own) {
    ours.emplace(file, own);
    in_file.emplace(own, file);
  };
  for (int head = 0; head < counts.heads; ++head) {
    for (int block = 0; block < counts.blocks; ++block) {
      for (const char* const part : {".weight", ".bias"}) {
        const std::string name = BlockName(head, block) + part;
        add(name, "heads." + name);
      }
    }
    add(MatrixName(head, counts.blocks), fmt::format("heads.{}.logits.weight", head));
  }
  const auto unknown = [&](std::string_view name) {
    return InvalidInput(fmt::format("{}: has tensor '{}', which is none of its {} heads of Medusa",
                                    folder->path.string(), Printable(name), counts.heads));
  };
  for (const auto& [name, tensor] : folder->tensors) {
    if (!ours.contains(name)) return unknown(name);
  }
  if (!folder->others.empty()) return unknown(folder->others.begin()->first);
  folder->Rename([&](std::string_view name) { return ours.find(name)->second; },
                 [in_file](std::string_view name) {
                   const auto found = in_file.find(name);
                   return found == in_file.end() ? std::string(name) : found->second;
                 });
  return {};
}

// What config.json says of sizes must be true; of counts it is often not.
Status CheckConfig(const Json& json, const std::string& where, const ModelConfig& target,
                   const Counts& counts, std::vector<std::string>* notes) {
  Status status;
  ConfigFields fields(&json, where, &status);
  RefuseUnknownFlags(json, kFlags, &fields);
  const auto same = [&](const char* name, int most, int of_target) {
    const int said = fields.IntOr(name, 1, most, of_target);
    if (said == of_target) return;
    fields.Refuse(
        fmt::format("is for a target whose {} is {}, but this one's is {}", name, said, of_target));
  };
  same("hidden_size", kMaxHidden, target.hidden);
  same("vocab_size", kMaxVocabulary, target.vocabulary);
  const auto count = [&](const char* name, int most, int counted) {
    const int said = fields.IntOr(name, 0, most, counted);
    if (said == counted) return;
    notes->push_back(fmt::format("{} says {} is {}, but the tensors have {}, which counts", where,
                                 name, said, counted));
  };
  count("medusa_num_heads", kMaxLayers, counts.heads);
  count("medusa_num_layers", kMaxLayers, counts.blocks);
  return status;
}

}  // namespace

bool IsMedusa(const Checkpoint& folder, const Json& json) {
  if (!json.is_object() || folder.Find("model.embed_tokens.weight") != nullptr) return false;
  return json.contains("medusa_num_heads") || json.value("model_type", Json()) == "medusa";
}

Result<LearnedDraft> ReadMedusa(Checkpoint folder, const Json& json, const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const Counts counts, Count(folder));
  FT_RETURN_IF_ERROR(CheckSizes(folder, counts, target));
  LearnedDraft draft;
  FT_RETURN_IF_ERROR(CheckConfig(json, folder.config.where, target, counts, &draft.notes));
  ModelConfig& config = draft.config;
  config.architecture = "heads of Medusa";
  config.family = target.family;
  config.hidden = target.hidden;
  config.vocabulary = target.vocabulary;
  config.max_positions = target.max_positions;
  config.bos = target.bos;
  config.eos = target.eos;
  config.feature = {.join = FeatureSpec::Join::kHeads,
                    .points = {TapShape::kFinalState},
                    .tapped = target.hidden,
                    .head_blocks = counts.blocks};
  // Rows of tokens that are not known yet are told apart by their places: no token is read.
  config.parallel = {.positions = counts.heads, .mask_token = 0, .block = counts.heads};
  draft.checkpoint = std::move(folder);
  FT_RETURN_IF_ERROR(NameHeads(counts, &draft.checkpoint));
  FT_RETURN_IF_ERROR(CheckWeights(draft.checkpoint, config));
  return draft;
}

}  // namespace foretoken
