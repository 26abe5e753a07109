#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace foretoken {

/// A tokenizer from the bytes of a SentencePiece model file, which `where` names in errors.
Result<std::unique_ptr<Tokenizer>> LoadSentencePiece(std::string file, std::string_view where,
                                                     const TokenizerConfig& config);

}  // namespace foretoken
