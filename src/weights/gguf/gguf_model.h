#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/tensor_map.h"
#include "weights/checkpoint.h"
#include "weights/gguf/gguf_metadata.h"

namespace foretoken {

/// The name that Hugging Face's folders have for a tensor of a Llama-shaped GGUF file
/// ("blk.3.attn_q.weight" is "model.layers.3.self_attn.q_proj.weight"); empty where there is none.
std::string CanonicalName(std::string_view gguf_name);
/// The other way round; a name that has no counterpart stays as it is.
std::string GgufName(std::string_view canonical_name);

/// What a file's metadata say of its model, in the form of a folder's config.json, so that one
/// parser judges both. `tensors` are the file's, by its own names: the size of the vocabulary, and
/// whether the embedding is the lm head too, are theirs. A key that is missing or out of range is
/// named as the file names it; architectures and rotary scalings that cannot be computed are
/// refused. `where` names the file in errors.
Result<std::string> ConfigFromGguf(const GgufMetadata& metadata, const TensorMap& tensors,
                                   std::string_view where);

/// Reads a GGUF file, and with the first part of a split one the others. A tensor that no Llama has
/// is refused: it might change what is computed.
Result<Checkpoint> ReadGgufModel(const std::filesystem::path& path);

}  // namespace foretoken
