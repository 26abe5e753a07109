#pragma once

#include "draft/drafter.h"

namespace foretoken {

/// Prompt lookup: the continuation of the latest earlier occurrence of the longest suffix of 3, 2
/// or 1 tokens, in prompt and output alike. Stateless.
class NgramDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId) override {}
};

}  // namespace foretoken
