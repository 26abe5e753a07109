#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/static_vector.h"
#include "core/sampling/history.h"
#include "foretoken/types.h"

namespace foretoken {

/// A token's text; empty of special ones.
using BytesOf = std::function<std::string_view(Token)>;

/// Which tokens a sequence's grammar leaves behind a path, where these are few. Scratch memory
/// only; one per thread.
class AllowedTokens {
 public:
  /// Texts that a grammar leaves open, at most, for it to say anything.
  static constexpr int kMostTexts = 3;

  /// `bytes_of` may be empty: then all allowed tokens count as texts of their own.
  explicit AllowedTokens(BytesOf bytes_of) : bytes_of_(std::move(bytes_of)) {}

  /// The mask of the output and `path` within `*steps` steps of work, less those it took. False
  /// where there is no grammar, or the mask takes more.
  bool Look(const TokenHistory& history, std::span<const Token> path, std::int64_t* steps);

  /// Whether the last mask lets the token follow.
  bool Allows(Token token) const;
  /// The ways on, longest token first of each: where a grammar forces a text, it allows every token
  /// that the text begins with, and what models write is nearly always the longest. Tokens that
  /// begin another one's text are no way of their own. None where there are more than kMostTexts,
  /// or more than kMostTokens tokens are allowed.
  StaticVector<Token, kMostTexts> Ways();

 private:
  static constexpr int kMostTokens = 64;

  BytesOf bytes_of_;
  std::span<const std::uint64_t> mask_;
  std::vector<Token> allowed_;  // Reused.
};

}  // namespace foretoken
