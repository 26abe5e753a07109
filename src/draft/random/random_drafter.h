#pragma once

#include "draft/drafter.h"

namespace foretoken {

/// Chains of uniformly random tokens: the paper's cheapest fallback (Section 4.3), whose only use
/// is that it costs nothing. Stateless: draws are a function of the seed and the position.
class RandomDrafter : public Drafter {
 public:
  explicit RandomDrafter(int vocabulary) : vocabulary_(vocabulary) {}

  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId) override {}

 private:
  int vocabulary_;
};

}  // namespace foretoken
