#include "core/datastore/index/token_text.h"

namespace foretoken {

TokenText::TokenText(int vocabulary) : vocabulary_(vocabulary) {
  FT_CHECK(vocabulary > 0, "vocabulary {}", vocabulary);
  if (token_bytes() == 4) text_.emplace<LargeArray<std::uint32_t>>();
}

std::size_t TokenText::entries() const {
  return Visit([](const auto& text) { return text.size(); });
}

Status TokenText::CheckRoom(std::size_t more) const {
  if (more <= kMaxTextEntries - entries()) return {};
  return Invalid(
      "{} tokens do not fit one segment, which holds {} at most; split them over several",
      entries() + more, kMaxTextEntries);
}

Status TokenText::Append(std::span<const Token> document) {
  if (document.empty()) return {};
  FT_RETURN_IF_ERROR(CheckRoom(document.size() + 1));
  for (const Token token : document) {
    if (token < 0 || token >= vocabulary_) {
      return Invalid("token {} lies outside the vocabulary of {} tokens", token, vocabulary_);
    }
  }
  Visit([&]<typename T>(LargeArray<T>& text) {
    std::size_t at = text.size();
    text.Resize(at + document.size() + 1);
    for (const Token token : document) text[at++] = static_cast<T>(token);
    text[at] = kSeparator<T>;
  });
  ++documents_;
  return {};
}

}  // namespace foretoken
