#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Reads a Hugging Face folder: config.json (present, at most 16 MiB), generation_config.json where
/// there is one, and its weights: the shards that model.safetensors.index.json names, or
/// model.safetensors, or where there is neither the same of pytorch_model.bin, or one of the files
/// that heads have: medusa_lm_head.safetensors, medusa_lm_head.pt or hydra_lm_head.pt.
Result<Checkpoint> ReadModelFolder(const std::filesystem::path& directory);

/// Reads the file that Medusa's heads have in a folder with the weights of a model, by itself;
/// nothing where there is none.
Result<std::optional<Checkpoint>> ReadHeadsBeside(const std::filesystem::path& directory);

}  // namespace foretoken
