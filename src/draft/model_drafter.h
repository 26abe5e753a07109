#pragma once

#include <memory>
#include <vector>

#include "draft/draft_model.h"
#include "draft/drafter.h"

namespace foretoken {

/// Speculative decoding's drafter: a draft model that proposes a chain, all sequences together, one
/// pass per token. Ranks its candidates under the target's own noise and sampler options.
class ModelDrafter : public Drafter {
 public:
  /// `model` outlives the drafter.
  ModelDrafter(LlamaModel* model, int max_sequences, int max_context);

  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override;

 private:
  struct Slot {
    SequenceId sequence = 0;
    bool used = false;
    DraftTrunk trunk;
  };
  Slot& SlotFor(SequenceId sequence);
  // Chooses the next proposal token of every context whose row is in the pass just made.
  void TakeTokens(std::span<DraftContext> contexts, const float* logits);

  DraftModel draft_;
  std::vector<Slot> slots_;
  std::vector<int> drafting_;  // Contexts with a row in the current pass, in order.
};

}  // namespace foretoken
