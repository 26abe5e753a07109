#include "text/grammar/chat/reasoning_limit.h"

#include <utility>

namespace foretoken {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Bytes that a character lacks after this one, where it lacked `before`.
int OpenBytesAfter(char c, int before) {
  const auto byte = static_cast<unsigned char>(c);
  if ((byte & 0xC0U) == 0x80U) return before > 0 ? before - 1 : 0;
  if (byte >= 0xF0U) return 3;
  if (byte >= 0xE0U) return 2;
  return byte >= 0xC0U ? 1 : 0;
}

// For each beginning of `mark` but the empty one: the length of the longest text that is both its
// start and its end.
std::vector<std::size_t> BordersOf(std::string_view mark) {
  std::vector<std::size_t> borders(mark.size(), 0);
  for (std::size_t i = 1; i < mark.size(); ++i) {
    std::size_t length = borders[i - 1];
    while (length > 0 && mark[i] != mark[length]) length = borders[length - 1];
    borders[i] = mark[i] == mark[length] ? length + 1 : 0;
  }
  return borders;
}

}  // namespace

Result<TokenReasoningLimit> TokenReasoningLimit::Create(ReasoningLimit limit,
                                                        const TokenTrie& trie) {
  if (limit.open.empty() || limit.close.empty()) {
    return InvalidInput("a limit of reasoning needs the marks around it, neither of them empty");
  }
  for (const std::string& mark : {limit.open, limit.close}) {
    if (limit.message.find(mark) == std::string::npos) continue;
    return Invalid("the message that ends the reasoning must not contain the mark '{}' itself",
                   mark);
  }
  std::vector<Token> ending;
  const std::string text = limit.message + limit.close;
  for (std::string_view rest = text; !rest.empty();) {
    const std::optional<Token> token = trie.LongestAt(rest);
    if (!token.has_value()) {
      return Invalid(
          "the model has no tokens for the byte 0x{:02X} of what ends its reasoning: use other "
          "characters in the message",
          static_cast<unsigned char>(rest.front()));
    }
    ending.push_back(*token);
    rest.remove_prefix(trie.BytesOf(*token).size());
  }
  return TokenReasoningLimit(std::move(limit), std::move(ending));
}

TokenReasoningLimit::TokenReasoningLimit(ReasoningLimit limit, std::vector<Token> ending)
    : limit_(std::move(limit)), ending_(std::move(ending)), borders_(BordersOf(limit_.close)) {}

ReasoningCursor::ReasoningCursor(const TokenReasoningLimit* limit)
    : limit_(limit), place_(limit->limit_.begun ? Place::kThoughts : Place::kBefore) {}

void ReasoningCursor::Push(std::string_view bytes) {
  if (place_ == Place::kBehind) return;
  if (place_ == Place::kThoughts) {
    if (next().has_value()) ++written_;
    // Further ones make no difference.
    if (tokens_ < limit_->limit_.tokens) ++tokens_;
  }
  for (const char byte : bytes) {
    open_bytes_ = OpenBytesAfter(byte, open_bytes_);
    place_ == Place::kThoughts ? StepInThoughts(byte) : StepBefore(byte);
  }
}

std::optional<Token> ReasoningCursor::next() const {
  if (!spent() || written_ >= limit_->ending_.size()) return std::nullopt;
  if (written_ == 0 && open_bytes_ > 0) return std::nullopt;
  return limit_->ending_[written_];
}

void ReasoningCursor::StepBefore(char byte) {
  const std::string& open = limit_->limit_.open;
  if (place_ == Place::kBehind || (matched_ == 0 && IsBlank(byte))) return;
  if (open[matched_] != byte) {
    place_ = Place::kBehind;
    return;
  }
  if (++matched_ < open.size()) return;
  place_ = Place::kThoughts;
  matched_ = 0;
  written_ = 0;
}

void ReasoningCursor::StepInThoughts(char byte) {
  const std::string& close = limit_->limit_.close;
  while (matched_ > 0 && close[matched_] != byte) matched_ = limit_->borders_[matched_ - 1];
  if (close[matched_] == byte) ++matched_;
  if (matched_ < close.size()) return;
  place_ = Place::kBefore;
  matched_ = 0;
}

}  // namespace foretoken
