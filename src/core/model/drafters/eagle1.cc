#include <utility>

#include "core/backend/taps.h"
#include "core/model/drafters/drafter_kind.h"

namespace foretoken {
namespace {

constexpr std::string_view kEagle1Flags[] = {"bias", "qkv_bias", "use_cache",
                                             "tie_word_embeddings"};

constexpr DrafterTensor kEagle1Tensors[] = {
    {"embedding", "embed_tokens"}, {"head", "lm_head"}, {"feature.join", "fc"}};

// A projection of token and feature, then Llama's layers, of which the first has no norm before its
// attention, and no norm behind the last.
Result<ModelConfig> DescribeEagle1(const Json& json, const std::string& where,
                                   const ModelConfig& target, std::vector<std::string>* /*notes*/) {
  Status status;
  ConfigFields fields(&json, where, &status);
  RefuseUnknownFlags(json, kEagle1Flags, &fields);
  // Biases of queries, keys and values have a name of their own there.
  Json layers = json;
  layers["attention_bias"] = fields.BoolOr("qkv_bias", false);
  layers["attention_output_bias"] = false;
  const bool bias = fields.BoolOr("bias", true);
  FT_RETURN_IF_ERROR(status);
  FT_ASSIGN_OR_RETURN(ModelConfig config, DescribeLayers(std::move(layers), where, "llama"));
  if (config.hidden != target.hidden) {
    fields.Refuse("hidden_size is {}, but the target's is {}", config.hidden, target.hidden);
  }
  FT_RETURN_IF_ERROR(status);
  config.feature = {.join = FeatureSpec::Join::kProjected,
                    .points = {TapShape::kFinalState},
                    .tapped = target.hidden,
                    .bias = bias,
                    .first_norm = false,
                    .output_norm = false};
  // Its states are made for the target's head.
  config.logit_scale = target.logit_scale;
  config.logit_cap = target.logit_cap;
  return config;
}

}  // namespace

const DrafterKind kEagle1 = {
    .name = "an EAGLE-1 drafter", .tensors = kEagle1Tensors, .describe = DescribeEagle1};

}  // namespace foretoken
