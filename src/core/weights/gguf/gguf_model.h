#pragma once

#include <filesystem>

#include "base/result.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Reads a GGUF file, and with the first part of a split one the others. Its configuration is left
/// empty: what its metadata say is up to the model's family
/// (core/model/families/gguf/gguf_config.h).
Result<Checkpoint> ReadGgufModel(const std::filesystem::path& path);

}  // namespace foretoken
