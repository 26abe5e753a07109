#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/numbers/portable_math.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/own_keys.h"

namespace foretoken {
namespace {

// How files number what makes weights of scores.
constexpr int kSoftmax = 1;
constexpr int kSigmoid = 2;

// The keys of a file of one architecture.
class Keys {
 public:
  Keys(const GgufMetadata& metadata, std::string_view architecture, Json* config)
      : metadata_(metadata), architecture_(architecture), config_(*config) {}

  std::string Named(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

  // Returns it, or -1 where there is none.
  std::int64_t Integer(const char* key, const char* field) {
    std::int64_t value = -1;
    if (metadata_.Integer(Named(key), 0, kMaxHidden, &value).ok() && value >= 0) {
      config_[field] = value;
    }
    return value;
  }

  // What says of experts how rows choose and weigh them.
  void Experts(int usual_scores) {
    Integer("leading_dense_block_count", "first_k_dense_replace");
    Integer("expert_shared_count", "n_shared_experts");
    const std::int64_t scores = Integer("expert_gating_func", "scoring_func");
    const bool sigmoids = (scores < 0 ? usual_scores : scores) == kSigmoid;
    config_["scoring_func"] = sigmoids ? "sigmoid" : "softmax";
    if (Integer("expert_group_count", "n_group") > 1) {
      Integer("expert_group_used_count", "topk_group");
      config_["topk_method"] = sigmoids ? "noaux_tc" : "group_limited_greedy";
    }
    bool normalised = false;
    if (metadata_.Flag(Named("expert_weights_norm"), &normalised).ok()) {
      config_["norm_topk_prob"] = normalised;
    }
    double number = 1;
    if (metadata_.Number(Named("expert_weights_scale"), &number).ok()) {
      config_["routed_scaling_factor"] = number;
    }
  }

 private:
  const GgufMetadata& metadata_;
  std::string_view architecture_;
  Json& config_;
};

}  // namespace

// Files call both kinds of models alike, and say of attention as it is computed here.
void DeepseekFromGguf(const GgufMetadata& metadata, Json* config) {
  Keys keys(metadata, "deepseek2", config);
  keys.Integer("attention.kv_lora_rank", "kv_lora_rank");
  keys.Integer("attention.q_lora_rank", "q_lora_rank");
  keys.Integer("attention.value_length_mla", "v_head_dim");
  const std::int64_t rotated = keys.Integer("rope.dimension_count", "qk_rope_head_dim");
  const std::int64_t width = keys.Integer("attention.key_length_mla", "qk_nope_head_dim");
  if (width > rotated) (*config)["qk_nope_head_dim"] = width - rotated;
  keys.Experts(kSoftmax);
  if ((*config)["scoring_func"] == "sigmoid") {
    (*config)["model_type"] = kDeepseekV3.name;
    (*config)["architectures"] = {kDeepseekV3.architecture};
  }
  // A tenth of what the logarithm of the stretch is multiplied by.
  double tenth = 0;
  if (metadata.Number(keys.Named("rope.scaling.yarn_log_multiplier"), &tenth).ok() && tenth > 0 &&
      config->contains("rope_scaling")) {
    const double whole = std::stod(fmt::format("{}", static_cast<float>(tenth))) * 10;
    (*config)["rope_scaling"]["mscale"] = whole;
    (*config)["rope_scaling"]["mscale_all_dim"] = whole;
  }
}

void Glm4MoeFromGguf(const GgufMetadata& metadata, Json* config) {
  Keys(metadata, "glm4moe", config).Experts(kSigmoid);
}

namespace {

// A tenth of what the logarithm of the stretch is multiplied by where scores are scaled.
double LogMultiplier(const AttentionSpec& attention, const RopeSpec& rope) {
  const double factor = rope.scaling.factor;
  if (!(factor > 1)) return 0;
  const int width = attention.latent.nope_dim + attention.head_dim - attention.latent.kv_rank;
  const double grown = std::sqrt(attention.scale * std::sqrt(static_cast<double>(width)));
  return (grown - 1) / PortableLog(factor);
}

void SetExpertKeys(const ModelConfig& config, std::string_view architecture, GgufHeader* header) {
  const auto key = [&](const char* name) { return fmt::format("{}.{}", architecture, name); };
  const auto set = [&](const char* name, int value) {
    header->Set(key(name), static_cast<std::uint32_t>(value));
  };
  const auto sparse = std::ranges::find_if(
      config.layers, [](const LayerSpec& layer) { return layer.mlp.has_experts(); });
  set("leading_dense_block_count", static_cast<int>(sparse - config.layers.begin()));
  if (sparse == config.layers.end()) return;
  const MlpSpec& mlp = sparse->mlp;
  const Routing& routing = mlp.routing;
  const bool sigmoids = routing.weights == Routing::Weights::kSigmoids ||
                        routing.weights == Routing::Weights::kSigmoidsOfSum;
  header->Erase(key("expert_shared_feed_forward_length"));
  set("expert_shared_count", mlp.shared_intermediate / mlp.intermediate);
  set("expert_gating_func", sigmoids ? kSigmoid : kSoftmax);
  set("expert_group_count", routing.groups);
  set("expert_group_used_count", routing.chosen_groups);
  header->Set(key("expert_weights_scale"), routing.factor);
  header->Set(key("expert_weights_norm"), routing.weights == Routing::Weights::kSigmoidsOfSum);
}

}  // namespace

void DeepseekToGguf(const ModelConfig& config, GgufHeader* header) {
  const auto key = [](const char* name) { return fmt::format("deepseek2.{}", name); };
  const auto set = [&](const char* name, int value) {
    header->Set(key(name), static_cast<std::uint32_t>(value));
  };
  const AttentionSpec& attention = config.first_attention();
  const LatentSpec& latent = attention.latent;
  const int rotated = attention.head_dim - latent.kv_rank;
  if (latent.query_rank > 0) set("attention.q_lora_rank", latent.query_rank);
  set("attention.kv_lora_rank", latent.kv_rank);
  set("attention.key_length_mla", latent.nope_dim + rotated);
  set("attention.value_length_mla", latent.value_dim);
  header->Erase(key("attention.scale"));
  if (const double tenth = LogMultiplier(attention, config.ropes.front()); tenth > 0) {
    header->Set(key("rope.scaling.yarn_log_multiplier"), static_cast<float>(tenth));
    header->Erase(key("rope.scaling.yarn_attn_factor"));  // Which that says.
  }
  SetExpertKeys(config, "deepseek2", header);
}

void Glm4MoeToGguf(const ModelConfig& config, GgufHeader* header) {
  SetExpertKeys(config, "glm4moe", header);
}

}  // namespace foretoken
