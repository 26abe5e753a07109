#include <algorithm>
#include <string>

#include "foretoken/chat_format.h"
#include "foretoken/tokenizer.h"

namespace foretoken {

ChatReading ReadingAfter(const Tokenizer& tokenizer, std::span<const Token> prompt) {
  constexpr std::size_t kTail = 16;  // Tokens; marks and the space around them are fewer.
  std::string tail;
  for (const Token token : prompt.last(std::min(prompt.size(), kTail))) {
    tail += tokenizer.TokenBytes(token);
  }
  ChatReading reading{.format = tokenizer.chat_format()};
  reading.in_reasoning = reading.format.OpensReasoning(tail);
  return reading;
}

}  // namespace foretoken
