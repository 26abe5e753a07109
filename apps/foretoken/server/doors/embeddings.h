#pragma once

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

// Where clients ask for the embeddings of texts. Each takes `pooling` beside its API's fields.

/// OpenAI's.
const Door& EmbeddingsDoor();

/// Ollama's, and its older one for a single text.
const Door& OllamaEmbedDoor();
const Door& OllamaEmbeddingsDoor();

/// llama.cpp's.
const Door& LlamaCppEmbeddingDoor();

/// Little-endian float32 in base64.
std::string Base64Floats(std::span<const float> values);

}  // namespace foretoken::server
