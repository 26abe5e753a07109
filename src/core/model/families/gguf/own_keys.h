#pragma once

#include "core/model/config/config_fields.h"
#include "core/model/config/model_config.h"
#include "core/weights/gguf/gguf_header.h"
#include "core/weights/gguf/gguf_metadata.h"

namespace foretoken {

// Families whose GGUF files say much in keys of their own: what these become as fields of
// config.json (Family::gguf_fields), and what they are of a model (Family::gguf_keys).

void DeepseekFromGguf(const GgufMetadata& metadata, Json* config);
void DeepseekToGguf(const ModelConfig& config, GgufHeader* header);

void Glm4MoeFromGguf(const GgufMetadata& metadata, Json* config);
void Glm4MoeToGguf(const ModelConfig& config, GgufHeader* header);

void Gemma4FromGguf(const GgufMetadata& metadata, Json* config);
void Gemma4ToGguf(const ModelConfig& config, GgufHeader* header);

void RecurrentFromGguf(const GgufMetadata& metadata, Json* config);
void RecurrentToGguf(const ModelConfig& config, GgufHeader* header);

}  // namespace foretoken
