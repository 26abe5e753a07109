#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "core/model/families/family.h"
#include "core/tensor/tensor_map.h"
#include "core/weights/gguf/gguf_metadata.h"

namespace foretoken {

/// Whether a tensor of a GGUF file is part of its configuration: factors of a rotation.
bool IsOfGgufConfig(std::string_view name);

/// What a GGUF file's metadata say of its model, in the form of a folder's config.json, so that one
/// parser judges both. `tensors` are the file's, by its own names: the size of the vocabulary,
/// biases, and whether the embedding is the head too, are theirs. A key that is missing or out of
/// range is named as the file names it; architectures and rotary scalings that cannot be computed
/// are refused. `where` names the file in errors.
Result<std::string> ConfigFromGguf(const GgufMetadata& metadata, const TensorMap& tensors,
                                   std::string_view where);

/// The same of a file of another `architecture`, whose layers are those of `family`. The size of
/// the vocabulary is what its key says, or where there is none `vocabulary`; which is 0 where there
/// must be one.
Result<std::string> LayersFromGguf(const GgufMetadata& metadata, const TensorMap& tensors,
                                   const std::string& architecture, const Family& family,
                                   int vocabulary, std::string_view where);

}  // namespace foretoken
