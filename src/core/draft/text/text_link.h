#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "foretoken/types.h"

namespace foretoken {

/// What a draft reads of one sequence of a target with other tokens: the text, in the draft's own.
class DraftText {
 public:
  virtual ~DraftText() = default;

  /// Reads on: `tokens`, the target's, begin with those of all earlier calls.
  virtual void Read(std::span<const Token> tokens) = 0;
  /// The text so far in the draft's tokens, and how many of them no longer change.
  virtual std::span<const Token> tokens() const = 0;
  virtual std::size_t settled() const = 0;
  /// The target's tokens for what the draft says next, `said`, behind `tokens` that were read.
  virtual std::vector<Token> TargetTokensOf(std::span<const Token> tokens,
                                            std::span<const Token> said) const = 0;
};

/// A target and a draft that have texts in common and nothing else. Immutable and thread-safe.
class TextLink {
 public:
  virtual ~TextLink() = default;
  /// The text of a sequence that begins.
  virtual std::unique_ptr<DraftText> NewText() const = 0;
};

}  // namespace foretoken
