#include "text/tokenizer/encode_behind.h"

#include <optional>
#include <span>
#include <string>

namespace foretoken {
namespace {

// What no piece joins with what follows it, in one vocabulary or the other.
constexpr std::string_view kAnchors[] = {"\n", "0"};

// How many of the first tokens have the bytes of `head` together; none where no such cut is.
std::optional<std::size_t> TokensOf(const Tokenizer& tokenizer, std::span<const Token> tokens,
                                    std::string_view head) {
  std::size_t count = 0;
  for (; count < tokens.size() && !head.empty(); ++count) {
    const std::string_view bytes = tokenizer.TokenBytes(tokens[count]);
    if (!head.starts_with(bytes)) return std::nullopt;
    head.remove_prefix(bytes.size());
  }
  return head.empty() ? std::optional(count) : std::nullopt;
}

}  // namespace

std::vector<Token> EncodeBehind(const Tokenizer& tokenizer, std::string_view text) {
  const auto encode = [&](std::string_view whole) {
    return tokenizer.Encode(whole, /*add_bos=*/false, /*parse_special=*/false);
  };
  if (!tokenizer.DropsLeadingSpace()) return encode(text);
  // The tokenizer puts a space in front.
  if (text.size() > 1 && text[0] == ' ') return encode(text.substr(1));
  for (const std::string_view anchor : kAnchors) {
    std::vector<Token> tokens = encode(std::string(anchor).append(text));
    const auto head = TokensOf(tokenizer, tokens, std::string(" ").append(anchor));
    if (!head.has_value()) continue;
    tokens.erase(tokens.begin(), tokens.begin() + *head);
    return tokens;
  }
  return encode(text);
}

}  // namespace foretoken
