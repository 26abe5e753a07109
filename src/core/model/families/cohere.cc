#include "core/model/families/family.h"

namespace foretoken {
namespace {

// What the classes have.
constexpr std::string_view kCohereFields = R"({
    "attention_bias": false, "layer_norm_eps": 1e-5, "logit_scale": 0.0625,
    "max_position_embeddings": 8192, "rope_theta": 500000.0, "tie_word_embeddings": true,
    "use_qk_norm": false})";
constexpr std::string_view kCohere2Fields = R"({
    "attention_bias": false, "layer_norm_eps": 1e-5, "layer_types": null, "logit_scale": 0.0625,
    "max_position_embeddings": 8192, "sliding_window": 4096, "sliding_window_pattern": 4,
    "tie_word_embeddings": true})";

// Attention and the MLP read the stream side by side through one norm, which takes the mean away
// and has no bias.
void DescribeCohere(ConfigFields& fields, ModelConfig* config) {
  config->tied_embeddings = fields.BoolOr("tie_word_embeddings", true);
  config->norm.kind = NormKind::kLayer;
  config->norm.epsilon = static_cast<float>(fields.NumberOr("layer_norm_eps", 1e-30, 1, 1e-5));
  config->block.parallel = true;
  config->block.shared_norm = true;
  config->logit_scale = static_cast<float>(fields.NumberOr("logit_scale", 1e-6, 1e6, 0.0625));
  if (!fields.BoolOr("use_qk_norm", false)) return;
  for (LayerSpec& layer : config->layers) {
    layer.attention.qk_norm = AttentionSpec::QkNorm::kEachHeadItsOwn;
  }
}

// Three of four layers see a window; the others see all positions and do not tell them apart.
void DescribeCohere2(ConfigFields& fields, ModelConfig* config) {
  DescribeCohere(fields, config);
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, 4096);
  const int every = fields.IntOr("sliding_window_pattern", 1, kMaxLayers, 4);
  const auto most = [every](int layer) { return (layer + 1) % every != 0; };
  const std::vector<bool> sliding = SlidingLayers(fields, config->layer_count(), most);
  SetWindows(sliding, window, config);
  for (std::size_t i = 0; i < config->layers.size(); ++i) {
    if (!sliding[i]) config->layers[i].attention.rope = -1;
  }
}

template <const char* kKey>
void CohereFromGguf(const GgufMetadata& metadata, Json* config) {
  double scale = 0;
  if (metadata.Number(kKey, &scale).ok() && scale > 0) {
    (*config)["logit_scale"] = static_cast<float>(scale);
  }
}
template <const char* kKey>
void CohereToGguf(const ModelConfig& config, GgufHeader* header) {
  header->Set(kKey, config.logit_scale);
}
constexpr char kCommandRScale[] = "command-r.logit_scale";
constexpr char kCohere2Scale[] = "cohere2.logit_scale";

}  // namespace

const Family kCohere = {.name = "cohere",
                        .architecture = "CohereForCausalLM",
                        .gguf = "command-r",
                        .neighbours = Neighbours::kAlways,
                        .fields = kCohereFields,
                        .describe = DescribeCohere,
                        .gguf_fields = CohereFromGguf<kCommandRScale>,
                        .gguf_keys = CohereToGguf<kCommandRScale>};

const Family kCohere2 = {.name = "cohere2",
                         .architecture = "Cohere2ForCausalLM",
                         .gguf = "cohere2",
                         .neighbours = Neighbours::kAlways,
                         .fields = kCohere2Fields,
                         .describe = DescribeCohere2,
                         .gguf_fields = CohereFromGguf<kCohere2Scale>,
                         .gguf_keys = CohereToGguf<kCohere2Scale>};

}  // namespace foretoken
