#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "foretoken/tokenizer.h"

namespace foretoken::server {

/// What /tokenize takes at once: a second's work, and a hundred times its memory.
inline constexpr std::size_t kMaxTokenizeBytes = 1 << 20;

/// The body of /tokenize.
struct TokenizeRequest {
  std::string content;
  bool add_special = false;   ///< The beginning-of-sequence token first.
  bool parse_special = true;  ///< Special tokens written out in the text are recognised.
  bool with_pieces = false;
};
Result<TokenizeRequest> ParseTokenizeRequest(std::string_view body);

/// The body of /detokenize: its tokens, within a vocabulary of `vocabulary`.
Result<std::vector<Token>> ParseDetokenizeRequest(std::string_view body, int vocabulary);

}  // namespace foretoken::server
