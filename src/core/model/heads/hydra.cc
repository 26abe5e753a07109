#include "core/model/heads/read_heads.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/text/printable.h"
#include "core/backend/taps.h"
#include "core/model/drafters/drafter_kind.h"
#include "core/model/drafters/shared_tables.h"
#include "core/model/families/family.h"
#include "core/model/heads/heads_folder.h"
#include "core/model/model_weights.h"
#include "foretoken/speculation.h"

namespace foretoken {
namespace {

constexpr std::string_view kHydraFlags[] = {"tie_word_embeddings", "use_cache", "grounded_heads"};
constexpr std::string_view kHydraPrefix = "prefix_embeding_layer.";  // As its authors spell it.

// Where the authors' modules have the blocks of a head: behind the layer of Hydra++ each stands
// behind one that drops out in training, which has no tensors but counts.
struct Layout {
  bool prefix = false;
  int first = 0;
  int step = 1;

  std::string Block(int head, int block) const {
    return fmt::format("hydra_mlp.{}.{}", head, first + step * block);
  }
  std::string Logits(int head) const {
    return fmt::format("hydra_lm_head.{}{}", head, prefix ? ".1" : "");
  }
};
constexpr Layout kMlp;
constexpr Layout kPrefixMlp = {.prefix = true, .first = 1, .step = 2};

// What config.json says.
struct Said {
  Layout layout;
  int offset = 0;  // How many of the target's layers lie behind the state that is read.
};

Result<Said> ReadSaid(const Json& json, const std::string& where, const ModelConfig& target) {
  Status status;
  ConfigFields fields(&json, where, &status);
  RefuseUnknownFlags(json, kHydraFlags, &fields);
  CheckSizesOfTarget(target, &fields);
  const std::string arch = json.contains("hydra_head_arch") && json["hydra_head_arch"].is_string()
                               ? json["hydra_head_arch"].get<std::string>()
                               : "mlp";
  if (arch != "mlp" && arch != "prefix-mlp") {
    fields.Refuse("hydra_head_arch is '{}', but only mlp and prefix-mlp are supported",
                  Printable(arch));
  }
  if (!fields.BoolOr("grounded_heads", false)) {
    fields.Refuse("grounded_heads is not true: heads that read no tokens are Medusa's");
  }
  Said said{.layout = arch == "mlp" ? kMlp : kPrefixMlp};
  said.offset = fields.IntOr("hidden_state_offset", 0, target.layer_count(), 0);
  if (said.layout.prefix && target.family != kLlama.name) {
    fields.Refuse(
        "hydra_head_arch is 'prefix-mlp', whose layer is that of a llama model, but the target is "
        "a {} model",
        target.family);
  }
  FT_RETURN_IF_ERROR(status);
  return said;
}

// How many heads there are, each of so many blocks.
struct Counts {
  int heads = 0;
  int blocks = 0;
};

Result<Counts> CountHydraHeads(const Checkpoint& folder, const Layout& layout) {
  const auto there = [&](const std::string& name) { return folder.Find(name) != nullptr; };
  Counts counts;
  while (there(layout.Logits(counts.heads) + ".weight")) ++counts.heads;
  while (there(layout.Block(0, counts.blocks) + ".linear.weight")) ++counts.blocks;
  const std::string path = folder.path.string();
  for (const auto& [count, name] :
       {std::pair(counts.heads, layout.Logits(0) + ".weight"),
        std::pair(counts.blocks, layout.Block(0, 0) + ".linear.weight")}) {
    if (count > 0) continue;
    return Invalid("{}: lacks tensor {}, of the first of Hydra's heads", path, name);
  }
  if (counts.heads > kMaxProposal) {
    return Invalid("{}: has {} heads, but no more than {} tokens are drafted", path, counts.heads,
                   kMaxProposal);
  }
  return counts;
}

// Tensors that nothing reads: frequencies of rotation, and embeddings in place of which the layer
// of Hydra++ reads states.
void DropUnread(Checkpoint* folder) {
  const std::string embeddings = fmt::format("{}embed_tokens.weight", kHydraPrefix);
  std::erase_if(folder->tensors, [&](const auto& tensor) {
    return tensor.first == embeddings || tensor.first.ends_with(".inv_freq");
  });
}

HeadNames HydraNames(const Checkpoint& folder, const Layout& layout, const Counts& counts) {
  HeadNames names;
  for (int head = 0; head < counts.heads; ++head) {
    for (int block = 0; block < counts.blocks; ++block) {
      const std::string name = layout.Block(head, block);
      const std::string ours = fmt::format("heads.{}.{}.", head, block);
      names.AddLinear(name + ".linear", ours + "linear");
      if (block == 0) names.AddLinear(name + ".res_connection", ours + "residual");
    }
    names.AddLinear(layout.Logits(head), fmt::format("heads.{}.logits", head));
  }
  if (!layout.prefix) return names;
  names.Add(fmt::format("{}norm.weight", kHydraPrefix), "output_norm.weight");
  names.AddLayer(folder, fmt::format("{}layers.0.", kHydraPrefix), 0);
  return names;
}

ModelConfig DescribeHydra(const Said& said, const Counts& counts, const ModelConfig& target) {
  const bool prefix = said.layout.prefix;
  ModelConfig config =
      HeadsConfig(target, prefix ? "heads of Hydra behind a layer" : "heads of Hydra");
  config.feature = {
      .join = FeatureSpec::Join::kSequentialHeads,
      .points = {said.offset == 0 ? TapShape::kFinalState : target.layer_count() - said.offset},
      .tapped = target.hidden,
      .leaves_normed = true,
      .heads = counts.heads,
      .head_blocks = counts.blocks,
      .output_norm = prefix};
  if (!prefix) return config;
  config.layers = {target.layers.front()};
  config.ropes = target.ropes;
  config.norm = target.norm;
  config.block = target.block;
  return config;
}

}  // namespace

bool IsHydra(const Checkpoint& folder, const Json& json) {
  if (!json.is_object() || folder.Find("model.embed_tokens.weight") != nullptr) return false;
  return json.contains("hydra_num_heads") || json.value("model_type", Json()) == "hydra";
}

Result<LearnedDraft> ReadHydra(Checkpoint folder, const Json& json, const Checkpoint& target,
                               const ModelConfig& target_config) {
  const std::string& where = folder.config.where;
  FT_ASSIGN_OR_RETURN(const Said said, ReadSaid(json, where, target_config));
  FT_ASSIGN_OR_RETURN(const Counts counts, CountHydraHeads(folder, said.layout));
  // The first head is checked here; that others are like it CheckWeights sees.
  FT_RETURN_IF_ERROR(CheckLogits(folder, said.layout.Logits(0) + ".weight", target_config));
  LearnedDraft draft;
  Status status;
  ConfigFields fields(&json, where, &status);
  NoteCount(where, "hydra_num_heads", counts.heads, &fields, &draft.notes);
  NoteCount(where, "hydra_num_layers", counts.blocks, &fields, &draft.notes);
  FT_RETURN_IF_ERROR(status);
  draft.config = DescribeHydra(said, counts, target_config);
  draft.checkpoint = std::move(folder);
  DropUnread(&draft.checkpoint);
  const std::string what = fmt::format("its {} heads of Hydra", counts.heads);
  FT_RETURN_IF_ERROR(
      HydraNames(draft.checkpoint, said.layout, counts).Rename(what, &draft.checkpoint));
  ShareEmbeddings(target, &draft.checkpoint);
  FT_RETURN_IF_ERROR(CheckWeights(draft.checkpoint, draft.config));
  return draft;
}

}  // namespace foretoken
