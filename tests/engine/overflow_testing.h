#pragma once

// Writes a small model that computes infinite numbers behind one of its tokens, of finite weights.

#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/files/temporary_testing.h"
#include "core/weights/weights_testing.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {

/// What is too large in an OverflowFolder.
enum class Overflow {
  kNone,
  kBehindAToken,  ///< A row that reads the token kTrigger: all its logits are NaN, and those after.
  kOfALogit,      ///< The logit of kTrigger, which is infinite in every row.
};

/// A folder with a Llama of random BF16 weights and the bundled tokenizer. Every row holds kTrigger
/// the likeliest: it is one of about ten tokens at temperature 1.
class OverflowFolder {
 public:
  static constexpr Token kTrigger = 700;

  explicit OverflowFolder(Overflow overflow) {
    const Json config = {{"architectures", {"LlamaForCausalLM"}},
                         {"model_type", "llama"},
                         {"hidden_size", kHidden},
                         {"intermediate_size", kWidth},
                         {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},
                         {"num_hidden_layers", 2},
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
    // Number 0 of a state is of the trigger alone, number 1 is the same in all: nothing adds to
    // these two.
    Tensor("model.embed_tokens.weight", kVocabulary, kHidden, 1, [](int row, int column) {
      if (column == 0) return std::optional(row == kTrigger ? 8.0F : 0.0F);
      return column == 1 ? std::optional(4.0F) : std::nullopt;
    });
    const float logit = overflow == Overflow::kOfALogit ? kHuge : 1.7F;
    Tensor("lm_head.weight", kVocabulary, kHidden, 0.05F, [&](int row, int column) {
      if (row != kTrigger) return std::optional<float>();
      return std::optional(column == 1 ? logit : 0.0F);
    });
    Gain("model.norm.weight");
    for (int layer = 0; layer < 2; ++layer) {
      Layer(layer, layer == 0 && overflow == Overflow::kBehindAToken ? kHuge : 0.0F);
    }
    folder_.Write("model.safetensors", weights_.Build());
  }

  std::string path() const { return folder_.path().string(); }
  std::unique_ptr<LoadedModel> Load() const {
    auto loaded = LoadModel({.path = path()}, std::make_shared<Device>(CoreSet{TargetCore()}), {});
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
    return std::move(loaded).value();
  }
  DraftOptions Draft() const {
    DraftOptions options = BundledDraft();
    options.source = {.path = path()};
    return options;
  }

 private:
  static constexpr int kHidden = 64;
  static constexpr int kWidth = 96;
  static constexpr int kVocabulary = 2048;
  static constexpr float kHuge = 3e38F;

  // Random but where `fixed` says a number.
  void Tensor(const std::string& name, int rows, int columns, float deviation,
              const std::function<std::optional<float>(int row, int column)>& fixed = {}) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> values;
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        const float drawn = normal(random_);
        values.push_back(fixed ? fixed(row, column).value_or(drawn) : drawn);
      }
    }
    weights_.Add(name, WeightFormat::kBF16, {rows, columns}, values);
  }
  void Gain(const std::string& name) {
    weights_.Add(name, WeightFormat::kBF16, {kHidden}, std::vector<float>(kHidden, 1.0F));
  }
  // The layer's first neuron sees number 0 alone, and writes it times `written` everywhere.
  void Layer(int layer, float written) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    const auto sees = [](int row, int column) {
      return row == 0 ? std::optional(column == 0 ? 1.0F : 0.0F) : std::nullopt;
    };
    const auto keeps = [](int row, int) { return row < 2 ? std::optional(0.0F) : std::nullopt; };
    Gain(at + "input_layernorm.weight");
    Gain(at + "post_attention_layernorm.weight");
    Tensor(at + "self_attn.q_proj.weight", 64, kHidden, 0.1F);
    Tensor(at + "self_attn.k_proj.weight", 32, kHidden, 0.1F);
    Tensor(at + "self_attn.v_proj.weight", 32, kHidden, 0.1F);
    Tensor(at + "self_attn.o_proj.weight", kHidden, 64, 0.1F, keeps);
    Tensor(at + "mlp.gate_proj.weight", kWidth, kHidden, 0.1F, sees);
    Tensor(at + "mlp.up_proj.weight", kWidth, kHidden, 0.1F, sees);
    Tensor(at + "mlp.down_proj.weight", kHidden, kWidth, 0.1F, [&](int row, int column) {
      return column == 0 ? std::optional(written) : keeps(row, column);
    });
  }

  std::mt19937 random_{3};
  SafetensorsBuilder weights_;
  TemporaryFolder folder_;
};

}  // namespace foretoken
