#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// Tokens by which `text` goes on behind `tokens`, of the same tokenizer: those that follow where
/// their last ones' text and this one are encoded together, if that begins with the last ones;
/// else those of `text` alone. Empty where the two together are no UTF-8. `special` tokens, which
/// have no text, are never looked past.
std::vector<Token> EncodeBehind(const Tokenizer& tokenizer, std::span<const Token> tokens,
                                std::string_view text);

/// A text that grows at its end, as tokens. Only its last tokens are encoded again, since what is
/// added may change them; those before are settled. Encoding allocates.
class RunningText {
 public:
  /// So many tokens at most may still change.
  static constexpr std::size_t kMostOpen = 32;

  /// Before all else: the text begins. With what the tokenizer begins texts with, if it has that.
  void Begin(const Tokenizer& tokenizer);
  /// Adds text, whole characters.
  void Append(const Tokenizer& tokenizer, std::string_view text);
  /// Adds a special token, behind which text is encoded anew.
  void AppendSpecial(Token token);

  std::span<const Token> tokens() const { return tokens_; }
  /// Tokens below it never change.
  std::size_t settled() const { return settled_; }
  /// The text of those that may.
  std::string_view open_text() const { return open_; }

 private:
  void Settle(const Tokenizer& tokenizer);
  std::vector<Token> tokens_;
  std::size_t settled_ = 0;
  std::string open_;
  bool at_start_ = true;  // No text is settled.
};

/// A target and a draft that have texts in common and nothing else (universal assisted generation;
/// Timor et al. 2025, arXiv 2502.05202). Immutable and thread-safe.
struct TextPair {
  std::shared_ptr<const Tokenizer> target;
  std::shared_ptr<const Tokenizer> draft;
  /// By the target's tokens: of a special one without text, the draft's of the same name or,
  /// failing that, role; -1 where it has none, or the token has text.
  std::vector<Token> marks;
};

std::shared_ptr<const TextPair> MakeTextPair(std::shared_ptr<const Tokenizer> target,
                                             std::shared_ptr<const Tokenizer> draft);

/// What a draft reads of one sequence of its target: the text of its tokens, in the draft's.
/// Special tokens are read where the draft has them, and left out where it has not: another model's
/// marks, spelled out, would be a text that it has never seen.
class TextOfTarget {
 public:
  /// `tokens` begin with those of all earlier calls.
  void Read(const TextPair& pair, std::span<const Token> tokens);

  const RunningText& draft_text() const { return text_; }
  /// The bytes that begin a character of which the rest is to come; the draft has not read them.
  const std::string& pending() const { return pending_; }
  /// Whether no text was read.
  bool at_start() const { return at_start_; }

 private:
  void ReadBytes(const TextPair& pair, std::string_view bytes);
  RunningText text_;
  std::string pending_;
  std::string fresh_;     // Text that text_ is yet to be told of.
  std::size_t read_ = 0;  // How many of the target's tokens were read.
  bool at_start_ = true;
};

/// The target's tokens for what its draft says next, `said`, behind `tokens` that `text` has read:
/// whole characters, and a special token that both have, behind which nothing counts. Empty where
/// the draft goes on otherwise than with the rest of the pending character.
std::vector<Token> TargetTokensOf(const TextPair& pair, const TextOfTarget& text,
                                  std::span<const Token> tokens, std::span<const Token> said);

}  // namespace foretoken
