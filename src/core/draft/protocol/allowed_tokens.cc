#include "core/draft/protocol/allowed_tokens.h"

#include <algorithm>
#include <bit>

namespace foretoken {

bool AllowedTokens::Look(const TokenHistory& history, std::span<const Token> path,
                         std::int64_t* steps) {
  mask_ = {};
  const ConstraintCursor* cursor = history.constraint();
  if (cursor == nullptr || *steps <= 0 || !history.PrepareMask(path, steps)) return false;
  mask_ = cursor->Mask(path);
  return true;
}

bool AllowedTokens::Allows(Token token) const {
  const auto at = static_cast<std::size_t>(token);
  return (mask_[at / 64] >> (at % 64) & 1) != 0;
}

StaticVector<Token, AllowedTokens::kMostTexts> AllowedTokens::Ways() {
  allowed_.clear();
  for (std::size_t word = 0; word < mask_.size(); ++word) {
    for (std::uint64_t bits = mask_[word]; bits != 0; bits &= bits - 1) {
      if (allowed_.size() == kMostTokens) return {};
      allowed_.push_back(static_cast<Token>(word * 64 + std::countr_zero(bits)));
    }
  }
  const auto bytes = [this](Token token) {
    return bytes_of_ ? bytes_of_(token) : std::string_view();
  };
  std::ranges::stable_sort(allowed_, std::ranges::greater(),
                           [&](Token token) { return bytes(token).size(); });
  StaticVector<Token, kMostTexts> ways;
  for (const Token token : allowed_) {
    const std::string_view text = bytes(token);
    const bool begins_other = !text.empty() && std::ranges::any_of(ways, [&](Token longer) {
      return bytes(longer).starts_with(text);
    });
    if (begins_other) continue;
    if (ways.size() == kMostTexts) return {};
    ways.push_back(token);
  }
  return ways;
}

}  // namespace foretoken
