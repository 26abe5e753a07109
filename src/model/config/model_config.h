#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "foretoken/types.h"

namespace foretoken {

struct Checkpoint;

/// Rotary position scaling as config.json's `rope_scaling` gives it; kFactors, which divides each
/// frequency by a factor of its own, is how GGUF files write llama3's.
struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3, kFactors };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  double low_frequency_factor = 1.0;       ///< llama3 only.
  double high_frequency_factor = 4.0;      ///< llama3 only.
  std::int64_t original_positions = 8192;  ///< llama3 only.
  std::vector<double> factors;             ///< kFactors only: [head_dim / 2].
};

/// The shape of a Llama-family model.
struct ModelConfig {
  std::string architecture;  ///< "LlamaForCausalLM"
  int hidden = 0;
  int intermediate = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocabulary = 0;
  int max_positions = 0;
  float norm_epsilon = 1e-5F;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  bool tied_embeddings = false;
  Token bos = -1;
  std::vector<Token> eos;  ///< From generation_config.json where present, else config.json.

  /// Weights of the whole model; a tied embedding table counts once.
  std::int64_t parameters() const;
};

/// Parses and validates config.json's text: every size positive and within sane limits, heads a
/// multiple of kv_heads, a known activation and rope scaling. `where` names the file in errors.
Result<ModelConfig> ParseModelConfig(std::string_view json, std::string_view where);

/// Takes the end-of-sequence tokens (one or a list) and the start token from the text of
/// generation_config.json where it has them.
Status ApplyGenerationConfig(std::string_view json, std::string_view where, ModelConfig* config);

/// The configuration of a model: config.json, then generation_config.json where present.
Result<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint);

/// A named shape for timing studies with random weights: "llama-135m", "llama-1b", "llama-8b",
/// "draft-12m" ... Unknown names list the known ones.
Result<ModelConfig> NamedShape(std::string_view name);

}  // namespace foretoken
