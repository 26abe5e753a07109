#pragma once

#include <cstddef>
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

}  // namespace foretoken
