#pragma once

#include <memory>

#include "base/result.h"
#include "core/weights/checkpoint.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// The tokenizer of a model: that of its folder's files, or of its GGUF file's metadata.
Result<std::unique_ptr<Tokenizer>> LoadTokenizer(const Checkpoint& checkpoint);

}  // namespace foretoken
