#pragma once

#include <string_view>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Parses and validates the text of a folder's config.json: every size positive and within sane
/// limits, heads a multiple of kv_heads, a known family, activation and rope scaling. Fields are
/// read as the family's class in `transformers` reads them: what it leaves out is as that class has
/// it, and a field that the class does not have means nothing. Of a model that sees or hears
/// besides, its text_config. `where` names the file in errors. The model is used for `context`
/// positions at most, 0: for all that it was made for.
Result<ModelConfig> ParseModelConfig(std::string_view json, std::string_view where,
                                     int context = 0);

/// The same of a description in that form which is of no class: of a GGUF file's metadata
/// (gguf/gguf_config.h), or of the layers of a drafter. All fields that any family has are read.
Result<ModelConfig> ParseDescription(std::string_view json, std::string_view where,
                                     int context = 0);

/// Takes the end-of-sequence tokens (one or a list) and the start token from the text of
/// generation_config.json where it has them.
Status ApplyGenerationConfig(std::string_view json, std::string_view where, ModelConfig* config);

/// The configuration of a model: config.json, then generation_config.json where present. A head
/// that lies in a folder is used, whatever config.json says of it.
Result<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint, int context = 0);

}  // namespace foretoken
