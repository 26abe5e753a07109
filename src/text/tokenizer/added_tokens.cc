#include "text/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstdint>

#include "base/text/text.h"

namespace foretoken {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (const AddedToken& token : tokens_) {
    if (token.content.empty()) continue;
    by_content_.emplace(token.content, &token);
    lengths_.push_back(token.content.size());
    starts_[static_cast<std::uint8_t>(token.content[0])] = true;
  }
  std::sort(lengths_.begin(), lengths_.end(), std::greater<>());
  lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
}

const AddedToken* AddedTokens::Find(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : found->second;
}

const AddedToken* AddedTokens::FindSpecial(std::string_view content) const {
  const AddedToken* token = Find(content);
  return token != nullptr && token->special ? token : nullptr;
}

const AddedToken* AddedTokens::MatchAt(std::string_view text, std::size_t begin,
                                       const MayStand& may_be_special) const {
  for (const std::size_t length : lengths_) {
    if (length > text.size() - begin) continue;
    const AddedToken* token = Find(text.substr(begin, length));
    if (token != nullptr && (!token->special || may_be_special(begin, begin + length))) {
      return token;
    }
  }
  return nullptr;
}

std::vector<TextPart> AddedTokens::Split(std::string_view text, bool parse_special) const {
  return Split(text, [parse_special](std::size_t, std::size_t) { return parse_special; });
}

std::vector<TextPart> AddedTokens::Split(std::string_view text,
                                         const MayStand& may_be_special) const {
  std::vector<TextPart> parts;
  std::size_t begin = 0;
  std::size_t i = 0;
  while (i < text.size()) {
    const AddedToken* token =
        starts_[static_cast<std::uint8_t>(text[i])] ? MatchAt(text, i, may_be_special) : nullptr;
    if (token == nullptr) {
      ++i;
      continue;
    }
    std::string_view before = text.substr(begin, i - begin);
    if (token->lstrip) before = before.substr(0, before.find_last_not_of(kSpaces) + 1);
    parts.push_back({before, token});
    i += token->content.size();
    if (token->rstrip) i = std::min(text.find_first_not_of(kSpaces, i), text.size());
    begin = i;
  }
  parts.push_back({text.substr(begin), nullptr});
  return parts;
}

}  // namespace foretoken
