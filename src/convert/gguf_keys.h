#pragma once

#include <vector>

#include "base/result.h"
#include "model/config/model_config.h"
#include "tokenizer/vocabulary_to_embed.h"
#include "weights/checkpoint.h"
#include "weights/gguf/gguf_header.h"

namespace foretoken {

/// Sets what a GGUF file says of a model and its tokenizer: from a GGUF file all of its own keys,
/// whoever knows them, but those of its parts; from a folder the llama.* and tokenizer.* keys that
/// its files come to. What cannot be said there is refused.
Status SetModelKeys(const Checkpoint& checkpoint, const ModelConfig& config, GgufHeader* header);

/// By what each frequency is divided, as rope_freqs.weight has it; empty where no such tensor is
/// needed.
std::vector<float> RopeFactors(const ModelConfig& config);

}  // namespace foretoken
