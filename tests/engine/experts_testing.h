#pragma once

// Writes a small model with experts.

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/files/temporary_testing.h"
#include "base/numbers/integers.h"
#include "core/weights/weights_testing.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {

/// A folder with a Qwen 3 MoE of random BF16 weights and the bundled tokenizer: 16 experts of which
/// a row chooses 4, in every layer but the middle one.
class ExpertsFolder {
 public:
  ExpertsFolder() {
    const Json config = {{"architectures", {"Qwen3MoeForCausalLM"}},
                         {"model_type", "qwen3_moe"},
                         {"hidden_size", kHidden},
                         {"intermediate_size", 2 * kWidth},
                         {"moe_intermediate_size", kWidth},
                         {"mlp_only_layers", {1}},
                         {"num_experts", kExperts},
                         {"num_experts_per_tok", 4},
                         {"norm_topk_prob", true},
                         {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},
                         {"head_dim", 16},
                         {"num_hidden_layers", 3},
                         {"hidden_act", "silu"},
                         {"rms_norm_eps", 1e-6},
                         {"rope_theta", 1e4},
                         {"max_position_embeddings", 512},
                         {"tie_word_embeddings", false},
                         {"vocab_size", kVocabulary},
                         {"bos_token_id", 1},
                         {"eos_token_id", 2}};
    folder_.Write("config.json", config.dump());
    for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
      std::filesystem::copy(BundledModel("demo-draft") + "/" + name, folder_.path());
    }
    Tensor("model.embed_tokens.weight", {kVocabulary, kHidden}, 1);
    Tensor("lm_head.weight", {kVocabulary, kHidden}, 0.4F);
    Gain("model.norm.weight", kHidden);
    for (int layer = 0; layer < 3; ++layer) Layer(layer);
    folder_.Write("model.safetensors", weights_.Build());
  }

  std::string path() const { return folder_.path().string(); }

  /// The model itself with its weights in 8 bits, as a draft.
  DraftOptions Draft() const {
    DraftOptions options = BundledDraft();
    options.source = {.path = path(), .weights = "q8_0"};
    return options;
  }

 private:
  static constexpr std::int64_t kHidden = 64;
  static constexpr std::int64_t kWidth = 32;
  static constexpr std::int64_t kExperts = 16;
  static constexpr std::int64_t kVocabulary = 2048;

  void Tensor(const std::string& name, const std::vector<std::int64_t>& shape, float deviation) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> values(Size(shape[0] * shape[1]));
    for (float& value : values) value = normal(random_);
    weights_.Add(name, WeightFormat::kBF16, shape, values);
  }
  void Gain(const std::string& name, std::int64_t width) {
    weights_.Add(name, WeightFormat::kBF16, {width}, std::vector<float>(width, 1.0F));
  }
  void Mlp(const std::string& at, std::int64_t width) {
    Tensor(at + "gate_proj.weight", {width, kHidden}, 0.2F);
    Tensor(at + "up_proj.weight", {width, kHidden}, 0.2F);
    Tensor(at + "down_proj.weight", {kHidden, width}, 0.2F);
  }
  void Layer(int layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    Gain(at + "input_layernorm.weight", kHidden);
    Gain(at + "post_attention_layernorm.weight", kHidden);
    Tensor(at + "self_attn.q_proj.weight", {64, kHidden}, 0.2F);
    Tensor(at + "self_attn.k_proj.weight", {32, kHidden}, 0.2F);
    Tensor(at + "self_attn.v_proj.weight", {32, kHidden}, 0.2F);
    Tensor(at + "self_attn.o_proj.weight", {kHidden, 64}, 0.2F);
    Gain(at + "self_attn.q_norm.weight", 16);
    Gain(at + "self_attn.k_norm.weight", 16);
    if (layer == 1) return Mlp(at + "mlp.", 2 * kWidth);
    Tensor(at + "mlp.gate.weight", {kExperts, kHidden}, 0.3F);
    for (int expert = 0; expert < kExperts; ++expert) {
      Mlp(at + "mlp.experts." + std::to_string(expert) + ".", kWidth);
    }
  }

  std::mt19937 random_{5};
  SafetensorsBuilder weights_;
  TemporaryFolder folder_;
};

}  // namespace foretoken
