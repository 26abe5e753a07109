#include "core/draft/protocol/copy_cursor.h"

#include <algorithm>

#include "core/draft/latest_occurrence.h"

namespace foretoken {
namespace {

constexpr std::size_t kLongest = 4;  // Tokens that make a place certain enough.
// How far ahead of the lost place to look: something may have been left out.
constexpr std::size_t kAhead = 512;
// How far behind the lost place to look: something may be written once more.
constexpr std::size_t kBehind = 64;
constexpr std::size_t kLeastCopied = 2;
constexpr std::size_t kShortFar = 2;  // Anywhere in the text a single token says too little.

// Whether the `length` tokens before `place` are those that the text ends with.
bool MatchesEnd(std::span<const Token> tokens, std::size_t place, std::size_t length) {
  return place >= length &&
         std::equal(tokens.end() - length, tokens.end(), tokens.begin() + (place - length));
}

}  // namespace

std::size_t CopyCursor::Near(std::span<const Token> tokens, std::size_t length) const {
  const std::size_t low = anchor_ > kBehind ? anchor_ - kBehind : 1;
  const std::size_t high = std::min(anchor_ + kAhead, tokens.size() - 1);
  // What was replaced or left out lies behind the anchor, so that comes first, nearest first.
  for (std::size_t place = anchor_; place <= high; ++place) {
    if (MatchesEnd(tokens, place, length)) return place;
  }
  for (std::size_t place = anchor_; place-- > low;) {
    if (MatchesEnd(tokens, place, length)) return place;
  }
  return 0;
}

void CopyCursor::Find(std::span<const Token> tokens) {
  next_ = 0;
  copied_ = 0;
  for (std::size_t length = kLongest; length >= 1; --length) {
    if (anchor_ != 0) next_ = Near(tokens, length);
    if (next_ == 0 && length >= kShortFar) next_ = LatestOccurrence(tokens, {}, length);
    if (next_ != 0) return;
  }
}

void CopyCursor::Follow(std::span<const Token> tokens) {
  const bool lost = next_ == 0;
  for (; seen_ < tokens.size(); ++seen_) {
    if (next_ == 0) continue;
    if (tokens[next_] == tokens[seen_]) {
      ++next_;
      ++copied_;
    } else {
      // What came true hardly at all was no place to look near.
      if (copied_ >= kLeastCopied) anchor_ = next_;
      next_ = 0;
    }
  }
  if (next_ == 0 || lost) Find(tokens);
}

}  // namespace foretoken
