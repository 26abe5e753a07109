#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "core/weights/gguf/gguf_metadata.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// The tokenizer in a GGUF file's metadata, equal to that of the folder which the file was made
/// from. A prompt never ends with the end-of-sequence token, whatever add_eos_token says: it is
/// there to be continued. `source` names the file in errors.
Result<std::unique_ptr<Tokenizer>> TokenizerFromGguf(const GgufMetadata& metadata,
                                                     const std::string& source);

}  // namespace foretoken
