#include "core/model/drafters/drafter_kind.h"
#include "core/model/drafters/prediction_layer.h"

namespace foretoken {
namespace {

constexpr std::string_view kMtpFamilies[] = {"qwen3", "qwen3_next", "qwen3_5_text",
                                             "qwen3_5_moe_text"};

constexpr std::string_view kMtpFlags[] = {"tie_word_embeddings", "use_cache"};

constexpr DrafterTensor kMtpTensors[] = {{"embedding", "embed_tokens"},
                                         {"head", "lm_head"},
                                         {"feature.join", "layers.0.input_proj"},
                                         {"feature.token_norm", "layers.0.token_layernorm"},
                                         {"feature.norm", "layers.0.hidden_layernorm"},
                                         {"output_norm", "layers.0.final_layernorm"}};

// A layer that guesses further tokens, by itself: what is described is the model that it is of.
Result<ModelConfig> DescribeMtp(const Json& json, const std::string& where,
                                const ModelConfig& target, std::vector<std::string>* /*notes*/) {
  Status status;
  ConfigFields fields(&json, where, &status);
  RefuseUnknownFlags(json, kMtpFlags, &fields);
  fields.IntOr("num_nextn_predict_layers", 1, 1, 1);
  FT_RETURN_IF_ERROR(status);
  FT_ASSIGN_OR_RETURN(const ModelConfig model, DescribeLayersWithin(json, where, kMtpFamilies));
  if (model.hidden != target.hidden) {
    fields.Refuse("is for a target whose hidden_size is {}, but this one's is {}", model.hidden,
                  target.hidden);
  }
  FT_RETURN_IF_ERROR(status);
  return PredictionLayerOf(model, where);
}

}  // namespace

const DrafterKind kMtp = {
    .name = "an MTP drafter", .tensors = kMtpTensors, .prefix = "mtp_", .describe = DescribeMtp};

}  // namespace foretoken
