#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "foretoken/chat_format.h"
#include "foretoken/types.h"
#include "text/grammar/tokens/token_trie.h"

namespace foretoken {

/// How many tokens a text may spend on thoughts. They stand between marks, before anything else
/// but white space; all that stand there count together. Once they are spent, `message` and the
/// closing mark are written in their place.
struct ReasoningLimit {
  static constexpr int kMaxTokens = ReasoningBudget::kMaxTokens;

  int tokens = 0;
  bool begun = false;  ///< The text begins within thoughts: the mark stands before it.
  std::string open;
  std::string close;
  std::string message = {};
  friend bool operator==(const ReasoningLimit&, const ReasoningLimit&) = default;
};

/// A limit over the tokens of a vocabulary. Immutable.
class TokenReasoningLimit {
 public:
  /// Refuses, in one sentence, marks that are empty, messages that have one of them, and what the
  /// vocabulary cannot write. Each token of what is written is the longest that fits there.
  static Result<TokenReasoningLimit> Create(ReasoningLimit limit, const TokenTrie& trie);

  const ReasoningLimit& limit() const { return limit_; }
  /// The message and the closing mark.
  std::span<const Token> ending() const { return ending_; }

 private:
  TokenReasoningLimit(ReasoningLimit limit, std::vector<Token> ending);

  ReasoningLimit limit_;
  std::vector<Token> ending_;
  std::vector<std::size_t> borders_;  // BordersOf the closing mark, as StepInThoughts asks.

  friend class ReasoningCursor;
};

/// Where a text stands in its limit: a function of its tokens. Copying forks it.
class ReasoningCursor {
 public:
  /// `limit` outlives it.
  explicit ReasoningCursor(const TokenReasoningLimit* limit);

  /// The text goes on with a token of these bytes.
  void Push(std::string_view bytes);

  /// Whether thoughts must end here.
  bool spent() const { return place_ == Place::kThoughts && tokens_ >= limit_->limit_.tokens; }
  /// Where they must: the token that comes next. None within a character, which is ended first.
  std::optional<Token> next() const;

 private:
  enum class Place {
    kBefore,    // Thoughts may begin.
    kThoughts,  // Within them.
    kBehind,    // Something else has begun: there are no more.
  };

  void StepBefore(char byte);
  void StepInThoughts(char byte);

  const TokenReasoningLimit* limit_;
  Place place_ = Place::kBefore;
  int tokens_ = 0;           // Tokens of thoughts.
  std::size_t matched_ = 0;  // Bytes of the mark that would be next.
  std::size_t written_ = 0;  // Tokens of the ending.
  int open_bytes_ = 0;       // Bytes that the character at hand lacks.
};

}  // namespace foretoken
