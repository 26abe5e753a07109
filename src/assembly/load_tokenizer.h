#pragma once

#include <memory>

#include "base/result.h"
#include "tokenizer/tokenizer.h"
#include "weights/checkpoint.h"

namespace foretoken {

/// The tokenizer of a model: that of its folder's files, or of its GGUF file's metadata.
Result<std::unique_ptr<Tokenizer>> LoadTokenizer(const Checkpoint& checkpoint);

}  // namespace foretoken
