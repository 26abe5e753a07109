#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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
    constraint_ = constraint.NewCursor(drops_space);
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
  const ConstraintCursor* constraint() const { return constraint_.get(); }
  /// Whether the constraint's mask for what follows the output and `path` is there and has a token,
  /// after at most about `*steps` more of work on it (ConstraintCursor). True without a constraint.
  bool PrepareMask(std::span<const Token> path, std::int64_t* steps) const {
    return constraint_ == nullptr ||
           (constraint_->Prepare(path, steps) && !constraint_->Refused(path));
  }
  /// Distinct tokens seen, in first-seen order: penalties touch these and no others.
  std::span<const Token> seen() const { return seen_; }

 private:
  void See(Token token);
  std::vector<std::uint8_t> prompt_;
  std::vector<std::int32_t> output_;
  std::vector<Token> seen_;
  std::vector<Token> recent_;  // A ring.
  std::size_t added_ = 0;
  std::size_t outputs_ = 0;
  std::unique_ptr<ConstraintCursor> constraint_;
};

}  // namespace foretoken
