#pragma once

#include <string_view>
#include <vector>

#include "foretoken/tokenizer.h"

namespace foretoken {

/// The tokens of a text that follows other text: without the space that some tokenizers put before
/// what begins a text. What the last token before it would have become part of is not seen.
std::vector<Token> EncodeBehind(const Tokenizer& tokenizer, std::string_view text);

}  // namespace foretoken
