#include "model/heads/medusa.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "backend/taps.h"
#include "foretoken/speculation.h"
#include "model/drafters/drafter_kind.h"
#include "model/heads/heads_folder.h"
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

// What the tensors of so many heads are called.
HeadNames NamesOf(const Counts& counts) {
  HeadNames names;
  for (int head = 0; head < counts.heads; ++head) {
    for (int block = 0; block < counts.blocks; ++block) {
      const std::string name = BlockName(head, block);
      names.AddLinear(name, "heads." + name);
    }
    names.Add(MatrixName(head, counts.blocks), fmt::format("heads.{}.logits.weight", head));
  }
  return names;
}

// What config.json says of sizes must be true; of counts it is often not.
Status CheckConfig(const Json& json, const std::string& where, const ModelConfig& target,
                   const Counts& counts, std::vector<std::string>* notes) {
  Status status;
  ConfigFields fields(&json, where, &status);
  RefuseUnknownFlags(json, kFlags, &fields);
  CheckSizesOfTarget(target, &fields);
  NoteCount(where, "medusa_num_heads", counts.heads, &fields, notes);
  NoteCount(where, "medusa_num_layers", counts.blocks, &fields, notes);
  return status;
}

}  // namespace

bool IsMedusa(const Checkpoint& folder, const Json& json) {
  if (!json.is_object() || folder.Find("model.embed_tokens.weight") != nullptr) return false;
  return json.contains("medusa_num_heads") || json.value("model_type", Json()) == "medusa";
}

Result<LearnedDraft> ReadMedusa(Checkpoint folder, const Json& json, const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const Counts counts, Count(folder));
  // Of the first head; that others are like it CheckWeights sees.
  FT_RETURN_IF_ERROR(CheckLogits(folder, MatrixName(0, counts.blocks), target));
  LearnedDraft draft;
  FT_RETURN_IF_ERROR(CheckConfig(json, folder.config.where, target, counts, &draft.notes));
  draft.config = HeadsConfig(target, "heads of Medusa");
  ModelConfig& config = draft.config;
  config.feature = {.join = FeatureSpec::Join::kHeads,
                    .points = {TapShape::kFinalState},
                    .tapped = target.hidden,
                    .heads = counts.heads,
                    .head_blocks = counts.blocks};
  // Rows of tokens that are not known yet are told apart by their places: no token is read.
  config.parallel = {.positions = counts.heads, .mask_token = 0, .block = counts.heads};
  draft.checkpoint = std::move(folder);
  const std::string what = fmt::format("its {} heads of Medusa", counts.heads);
  FT_RETURN_IF_ERROR(NamesOf(counts).Rename(what, &draft.checkpoint));
  FT_RETURN_IF_ERROR(CheckWeights(draft.checkpoint, config));
  return draft;
}

}  // namespace foretoken
