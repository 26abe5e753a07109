#pragma once

#include <string_view>

#include "base/result.h"
#include "model/config/model_config.h"
#include "weights/checkpoint.h"

namespace foretoken {

/// Parses and validates config.json's text: every size positive and within sane limits, heads a
/// multiple of kv_heads, a known family, activation and rope scaling. Of a model that sees or hears
/// besides, its text_config. `where` names the file in errors. The model is used for `context`
/// positions at most, 0: for all that it was made for.
Result<ModelConfig> ParseModelConfig(std::string_view json, std::string_view where,
                                     int context = 0);

/// Takes the end-of-sequence tokens (one or a list) and the start token from the text of
/// generation_config.json where it has them.
Status ApplyGenerationConfig(std::string_view json, std::string_view where, ModelConfig* config);

/// The configuration of a model: config.json, then generation_config.json where present.
Result<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint, int context = 0);

}  // namespace foretoken
