#include "core/model/heads/read_heads.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/model/drafters/shared_tables.h"
#include "core/model/families/family.h"
#include "core/model/heads/heads_folder.h"
#include "core/model/model_weights.h"
#include "foretoken/speculation.h"

namespace foretoken {
namespace {

constexpr std::string_view kExtraHeadsPrefix = "model.extra_heads.";

bool IsOfHeads(std::string_view name) { return name.starts_with(kExtraHeadsPrefix); }

std::string ExtraHeadPrefix(int head) { return fmt::format("{}{}.", kExtraHeadsPrefix, head); }

// How many there are, one numbered behind the other.
int CountExtraHeads(const Checkpoint& model) {
  int count = 0;
  const auto there = [&] {
    const std::string prefix = ExtraHeadPrefix(count);
    const auto found = model.tensors.lower_bound(prefix);
    return found != model.tensors.end() && found->first.starts_with(prefix);
  };
  while (there()) ++count;
  return count;
}

}  // namespace

bool HasExtraHeads(const Checkpoint& model) {
  return std::ranges::any_of(model.tensors,
                             [](const auto& tensor) { return IsOfHeads(tensor.first); });
}

Result<LearnedDraft> ReadExtraHeads(Checkpoint model, const Checkpoint& target,
                                    const ModelConfig& target_config) {
  const std::string path = model.path.string();
  if (target_config.family != kLlama.name) {
    return Invalid(
        "{}: has extra heads, which of llama models only are supported, but this is a {} model",
        path, target_config.family);
  }
  const int count = CountExtraHeads(model);
  if (count == 0 || count > kMaxProposal) {
    return Invalid("{}: has {} extra heads, but from 1 to {} are supported", path, count,
                   kMaxProposal);
  }
  LearnedDraft draft;
  draft.config = target_config;
  ModelConfig& config = draft.config;
  config.architecture = "extra heads, a layer each";
  config.layers.assign(count, target_config.layers.back());
  config.tied_embeddings = false;
  config.feature = {.join = FeatureSpec::Join::kLayerHeads,
                    .points = {target_config.layer_count() - 1},
                    .tapped = target_config.hidden,
                    .leaves_normed = true};
  // Rows of tokens that are not known yet are told apart by their places: no token is read.
  config.parallel = {.positions = count, .mask_token = 0, .block = count};
  const auto of_model = [](const auto& tensor) { return !IsOfHeads(tensor.first); };
  std::erase_if(model.tensors, of_model);
  std::erase_if(model.others, of_model);
  std::erase_if(model.arranged, of_model);
  HeadNames names;
  for (int head = 0; head < count; ++head) names.AddLayer(model, ExtraHeadPrefix(head), head);
  FT_RETURN_IF_ERROR(names.Rename(fmt::format("its {} extra heads", count), &model));
  FT_RETURN_IF_ERROR(ShareTables(target, target_config, config, &model));
  ShareOutputNorm(target, &model);
  FT_RETURN_IF_ERROR(CheckWeights(model, config));
  draft.checkpoint = std::move(model);
  return draft;
}

}  // namespace foretoken
