#pragma once

#include <vector>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"
#include "core/weights/gguf/gguf_header.h"
#include "text/tokenizer/vocabulary_to_embed.h"

namespace foretoken {

/// Sets what a GGUF file says of a model and its tokenizer: from a GGUF file all of its own keys,
/// whoever knows them, but those of its parts; from a folder the keys of its architecture and
/// tokenizer.* that its files come to, as llama.cpp's converter calls them.
Status SetModelKeys(const Checkpoint& checkpoint, const ModelConfig& config, GgufHeader* header);

/// By what frequencies are divided, a number for each pair.
struct RopeFactors {
  const char* name;
  std::vector<float> values;
};
/// The tensors of a model's rotation; none where keys say all of it.
Result<std::vector<RopeFactors>> ReadRopeFactors(const Checkpoint& checkpoint,
                                                 const ModelConfig& config);

/// Refuses to write a folder as a file of the keys of `header` and these tensors (only those of the
/// rotation have data) unless it describes the model that `config` does.
Status CheckDescription(const Checkpoint& checkpoint, const ModelConfig& config,
                        const GgufHeader& header, const TensorMap& tensors);

}  // namespace foretoken
