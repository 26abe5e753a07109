#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/numbers/integers.h"
#include "foretoken/types.h"

namespace foretoken {

/// The n-gram pool of lookahead decoding (Fu et al., 2024): what was seen to follow a token, the
/// latest first. Bounded: n-grams whose first tokens share a set (of kSets, by their number) share
/// kWays places, and a new one takes that of the oldest. 4.6 MB, allocated by the constructor. Not
/// thread-safe.
class NgramPool {
 public:
  static constexpr int kWays = 32;       ///< So at most as many of one first token.
  static constexpr int kMaxLength = 31;  ///< Tokens behind the first.

  NgramPool();

  /// Adds the n-gram, cut to its first kMaxLength + 1 tokens, as the latest, also where it is
  /// known. `rest` is not empty.
  void Insert(Token first, std::span<const Token> rest);
  /// What follows `first`, `most` at most, the latest first. Valid until the next call of any kind.
  std::span<const std::span<const Token>> Latest(Token first, int most);
  void Clear();

 private:
  static constexpr int kSets = 1024;

  struct Entry {
    Token first = -1;  // -1: a free place.
    std::int32_t length = 0;
    std::uint64_t stamp = 0;  // When it came last; 0: never.
  };

  std::span<Entry> SetOf(Token first) {
    return std::span(entries_).subspan(Size(first % kSets) * kWays, kWays);
  }
  // The tokens behind the first.
  std::span<Token> RestOf(const Entry& entry);

  std::uint64_t clock_ = 0;
  std::vector<Entry> entries_;  // [kSets, kWays]
  std::vector<Token> rests_;    // [kSets, kWays, kMaxLength]
  std::vector<const Entry*> found_;
  std::vector<std::span<const Token>> latest_;
};

}  // namespace foretoken
