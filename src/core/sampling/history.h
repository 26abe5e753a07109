#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foretoken/constraint.h"
#include "foretoken/types.h"

namespace foretoken {

/// What the sampler must know of a sequence's prefix: the tokens that penalties look at, as counts,
/// and where the output stands in its constraint. Grows with the emitted prefix only.
class TokenHistory {
 public:
  /// Allocates here only. The latest `window` tokens are kept in their order, for penalties that
  /// look at no others (SamplingParams::penalty_window).
  explicit TokenHistory(int vocabulary, int window = 0);

  /// The output is to match `constraint`; before the first AddOutput. `drops_space` as in
  /// ConstraintCursor.
  void Constrain(TokenConstraint& constraint, bool drops_space) {
    constraint_.cursor = constraint.NewCursor(drops_space);
  }

  void AddPrompt(std::span<const Token> tokens);
  void AddOutput(Token token);

  bool InPrompt(Token token) const { return prompt_[token] != 0; }
  int OutputCount(Token token) const { return output_[token]; }
  /// How many of the latest tokens are kept in their order.
  std::size_t recent_tokens() const { return std::min(added_, recent_.size()); }
  /// The token that so many others came behind, and whether it is of the output.
  Token Recent(std::size_t behind) const { return recent_[(added_ - 1 - behind) % recent_.size()]; }
  bool IsOutput(std::size_t behind) const { return behind < outputs_; }
  /// nullptr where there is none.
  const ConstraintCursor* constraint() const { return constraint_.cursor.get(); }
  /// Whether the constraint's mask for what follows the output and `path` is there and has a token,
  /// after at most about `*steps` more of work on it (ConstraintCursor). True without a constraint.
  bool PrepareMask(std::span<const Token> path, std::int64_t* steps) const {
    const ConstraintCursor* const cursor = constraint();
    return cursor == nullptr || (cursor->Prepare(path, steps) && !cursor->Refused(path));
  }
  /// Distinct tokens seen, in first-seen order: penalties touch these and no others.
  std::span<const Token> seen() const { return seen_; }

 private:
  // A cursor that is copied with its history.
  struct OwnCursor {
    OwnCursor() = default;
    OwnCursor(const OwnCursor& other)
        : cursor(other.cursor == nullptr ? nullptr : other.cursor->Clone()) {}
    OwnCursor(OwnCursor&&) = default;
    OwnCursor& operator=(OwnCursor other) noexcept {
      std::swap(cursor, other.cursor);
      return *this;
    }

    std::unique_ptr<ConstraintCursor> cursor;  // Null where there is no constraint.
  };

  void See(Token token);
  std::vector<std::uint8_t> prompt_;
  std::vector<std::int32_t> output_;
  std::vector<Token> seen_;
  std::vector<Token> recent_;  // A ring.
  std::size_t added_ = 0;
  std::size_t outputs_ = 0;
  OwnCursor constraint_;
};

}  // namespace foretoken
