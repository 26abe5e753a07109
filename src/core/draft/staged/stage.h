#pragma once

#include <span>

#include "core/draft/drafter.h"

namespace foretoken {

/// A drafter that drafts for another one, between that one's passes (staged speculative decoding,
/// Spector and Re 2023): behind tokens that are drafted themselves.
class Stage : public Drafter {
 public:
  /// Fills the proposal of every context with a chain. The last `drafted[i]` tokens of context i
  /// are not committed, so the next call may have others in their place; its history ends before
  /// them. An empty proposal is a valid answer.
  virtual void ProposeBehind(std::span<DraftContext> contexts, std::span<const int> drafted) = 0;
};

}  // namespace foretoken
