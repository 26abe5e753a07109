#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "foretoken/types.h"

namespace foretoken {

/// Where one sequence stands in its constraint: a function of its output so far.
class ConstraintCursor {
 public:
  virtual ~ConstraintCursor() = default;

  /// Another one at the same place, which goes on by itself.
  virtual std::unique_ptr<ConstraintCursor> Clone() const = 0;

  /// Whether the text is shown without a space at its very beginning, so that none is counted.
  virtual bool drops_space() const = 0;

  /// The sequence goes on with `token`. A token that is not allowed, or anything after the end,
  /// leaves a text that nothing may follow.
  virtual void Push(Token token) = 0;

  /// Works on the mask after the output and `path` for about `*steps` steps, less those it took
  /// afterwards. True once it is there: Mask then costs nothing.
  virtual bool Prepare(std::span<const Token> path, std::int64_t* steps) const = 0;
  /// Whether a mask that is there was refused: the constraint is too ambiguous to go on.
  virtual bool Refused(std::span<const Token> path) const = 0;

  /// One bit per token, from the lowest of the first word on: which may follow the output and
  /// `path`; none where the mask is refused. Valid until the constraint is used again.
  virtual std::span<const std::uint64_t> Mask(std::span<const Token> path) const = 0;

  /// The text may end here.
  virtual bool MayEnd() const = 0;
  /// A longer text may follow. With neither, a token was pushed that is not allowed, or the
  /// constraint is too ambiguous.
  virtual bool MayContinue() const = 0;
};

/// Which tokens may come next, over the tokens of a vocabulary. Shared by all sequences that obey
/// the same constraint; each has a cursor. It may be made on one thread and used on another, but
/// its cursors belong to one thread.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  /// The grammar that it was compiled from: what another process compiles the same one from.
  virtual const std::string& grammar() const = 0;
  /// How many tokens its masks are about.
  virtual int vocabulary() const = 0;
  /// At the beginning of an output. `drops_space` as in ConstraintCursor.
  virtual std::unique_ptr<ConstraintCursor> NewCursor(bool drops_space) = 0;
};

}  // namespace foretoken
