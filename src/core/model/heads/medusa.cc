#include "core/model/heads/read_heads.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/backend/taps.h"
#include "core/model/drafters/drafter_kind.h"
#include "core/model/heads/heads_folder.h"
#include "core/model/model_weights.h"
#include "core/weights/model_folder.h"
#include "foretoken/speculation.h"

namespace foretoken {
namespace {

constexpr std::string_view kMedusaFlags[] = {"tie_word_embeddings", "use_cache"};
// Before the names of heads that lie among a model's tensors.
constexpr std::string_view kOwnPrefixes[] = {"medusa_head.", "medusa_lm_head."};

// Where a checkpoint has heads, and how many, each of a sequence of so many blocks and a matrix.
struct Heads {
  std::string prefix;  // Before all names.
  int count = 0;
  int blocks = 0;

  std::string Block(int head, int block) const {
    return fmt::format("{}{}.{}.linear", prefix, head, block);
  }
  std::string Matrix(int head) const { return fmt::format("{}{}.{}.weight", prefix, head, blocks); }
};

Result<Heads> CountMedusaHeads(const Checkpoint& files, std::string_view prefix) {
  const auto there = [&](const std::string& name) { return files.Find(name) != nullptr; };
  Heads heads{.prefix = std::string(prefix)};
  while (there(heads.Block(0, heads.blocks) + ".weight")) ++heads.blocks;
  while (there(heads.Matrix(heads.count))) ++heads.count;
  const std::string path = files.path.string();
  if (heads.count == 0) {
    return Invalid("{}: lacks tensor {}, the matrix of the first of Medusa's heads", path,
                   heads.Matrix(0));
  }
  if (heads.count > kMaxProposal) {
    return Invalid("{}: has {} heads, but no more than {} tokens are drafted", path, heads.count,
                   kMaxProposal);
  }
  return heads;
}

HeadNames MedusaNames(const Heads& heads) {
  HeadNames names;
  for (int head = 0; head < heads.count; ++head) {
    for (int block = 0; block < heads.blocks; ++block) {
      names.AddLinear(heads.Block(head, block), fmt::format("heads.{}.{}.linear", head, block));
    }
    names.Add(heads.Matrix(head), fmt::format("heads.{}.logits.weight", head));
  }
  return names;
}

// Every tensor of `files` must be one of the heads'. What config.json says of counts is often not
// true.
Result<LearnedDraft> ReadMedusaHeads(Checkpoint files, std::string_view prefix, const Json& json,
                                     const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const Heads heads, CountMedusaHeads(files, prefix));
  // The first head is checked here; that others are like it CheckWeights sees.
  FT_RETURN_IF_ERROR(CheckLogits(files, heads.Matrix(0), target));
  LearnedDraft draft;
  Status status;
  ConfigFields fields(&json, files.config.where, &status);
  NoteCount(files.config.where, "medusa_num_heads", heads.count, &fields, &draft.notes);
  NoteCount(files.config.where, "medusa_num_layers", heads.blocks, &fields, &draft.notes);
  FT_RETURN_IF_ERROR(status);
  draft.config = HeadsConfig(target, "heads of Medusa");
  ModelConfig& config = draft.config;
  config.feature = {.join = FeatureSpec::Join::kHeads,
                    .points = {TapShape::kFinalState},
                    .tapped = target.hidden,
                    .heads = heads.count,
                    .head_blocks = heads.blocks};
  // Rows of tokens that are not known yet are told apart by their places: no token is read.
  config.parallel = {.positions = heads.count, .mask_token = 0, .block = heads.count};
  draft.checkpoint = std::move(files);
  const std::string what = fmt::format("its {} heads of Medusa", heads.count);
  FT_RETURN_IF_ERROR(MedusaNames(heads).Rename(what, &draft.checkpoint));
  FT_RETURN_IF_ERROR(CheckWeights(draft.checkpoint, config));
  return draft;
}

}  // namespace

bool IsMedusa(const Checkpoint& folder, const Json& json) {
  if (!json.is_object() || folder.Find("model.embed_tokens.weight") != nullptr) return false;
  return json.contains("medusa_num_heads") || json.value("model_type", Json()) == "medusa";
}

Result<LearnedDraft> ReadMedusa(Checkpoint folder, const Json& json, const ModelConfig& target) {
  Status status;
  ConfigFields fields(&json, folder.config.where, &status);
  RefuseUnknownFlags(json, kMedusaFlags, &fields);
  CheckSizesOfTarget(target, &fields);
  FT_RETURN_IF_ERROR(status);
  return ReadMedusaHeads(std::move(folder), "", json, target);
}

Result<LearnedDraft> ReadOwnMedusa(Checkpoint model, const ModelConfig& target) {
  for (const std::string_view prefix : kOwnPrefixes) {
    const auto of_model = [&](const auto& tensor) { return !tensor.first.starts_with(prefix); };
    if (std::ranges::all_of(model.tensors, of_model)) continue;
    std::erase_if(model.tensors, of_model);
    std::erase_if(model.others, of_model);
    std::erase_if(model.arranged, of_model);
    Json json = Json::Parse(model.config.json);
    if (!json.is_object()) json = Json::object();
    return ReadMedusaHeads(std::move(model), prefix, json, target);
  }
  FT_ASSIGN_OR_RETURN(std::optional<Checkpoint> beside, ReadHeadsBeside(model.path));
  if (beside.has_value()) return ReadMedusaHeads(*std::move(beside), "", Json::object(), target);
  return Invalid(
      "{}: has no heads of Medusa beside the model: tensors {}*, or a file of heads such as "
      "medusa_lm_head.safetensors",
      model.path.string(), kOwnPrefixes[0]);
}

}  // namespace foretoken
