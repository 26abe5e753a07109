#include "tokenizer/encode_behind.h"

#include <algorithm>
#include <string>

namespace foretoken {

std::vector<Token> EncodeBehind(const Tokenizer& tokenizer, std::string_view text) {
  const auto encode = [&](const std::string& whole) {
    return tokenizer.Encode(whole, /*add_bos=*/false, /*parse_special=*/false);
  };
  // Nothing grows together with the end of a line, in most tokenizers.
  std::string whole = "\n";
  const std::vector<Token> before = encode(whole);
  std::vector<Token> tokens = encode(whole += text);
  if (tokens.size() < before.size() || !std::equal(before.begin(), before.end(), tokens.begin())) {
    return encode(std::string(text));
  }
  tokens.erase(tokens.begin(), tokens.begin() + std::ssize(before));
  return tokens;
}

}  // namespace foretoken
