#pragma once

#include <cstddef>
#include <span>

#include "foretoken/types.h"

namespace foretoken {

/// Where in its own text, prompt and output, a sequence is copying from: a file under edit, the
/// result of a tool. It goes on through what is copied; what is inserted, left out or replaced
/// loses it, and it is found again, near the place if it can be.
class CopyCursor {
 public:
  CopyCursor() = default;
  /// It is looked for near the place `beginning` first.
  explicit CopyCursor(std::size_t beginning) : anchor_(beginning) {}

  /// `tokens`: all of the sequence, the longer each time.
  void Follow(std::span<const Token> tokens);

  /// The place of the token that should come next; 0: not known, since place 0 follows nothing.
  std::size_t next() const { return next_; }
  /// Where it was lost, while it is: the token there was to come and another one came. 0: nowhere.
  std::size_t lost_at() const { return next_ == 0 ? anchor_ : 0; }

 private:
  // A place near the anchor behind the same `length` tokens as the end's; 0: none.
  std::size_t Near(std::span<const Token> tokens, std::size_t length) const;
  void Find(std::span<const Token> tokens);

  std::size_t seen_ = 0;
  std::size_t next_ = 0;
  std::size_t copied_ = 0;  // Tokens that came as they were to since it was found.
  std::size_t anchor_ = 0;  // Where it was lost; 0: it never was.
};

}  // namespace foretoken
