#pragma once

#include <memory>
#include <vector>

#include "draft/drafter.h"
#include "draft/model/draft_model.h"

namespace foretoken {

/// Speculative decoding's drafter: a draft model that proposes chains or trees, all sequences
/// together, one pass per level. Ranks its candidates under the target's own noise and sampler
/// options.
class ModelDrafter : public Drafter {
 public:
  ModelDrafter(std::shared_ptr<Model> model, int max_sequences, int max_context);

  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override;

 private:
  struct Slot {
    SequenceId sequence = 0;
    bool used = false;
    DraftTrunk trunk;
  };
  Slot& SlotFor(SequenceId sequence);
  // Ranks the candidates after every node whose row is in the pass just made.
  void TakeRows(std::span<DraftContext> contexts, Logits logits);

  // What the draft says after `node`: its best tokens, or drawn ones whose law is set.
  Ranking RankNode(const DraftContext& context, const Proposal& proposal, int node, Logits logits);

  std::shared_ptr<Model> model_;
  DraftModel draft_;
  std::vector<Slot> slots_;
  // Contexts with rows in the current pass, and the nodes these rows are of, in order.
  std::vector<int> drafting_;
  std::vector<StaticVector<std::int8_t, kMaxProposal + 1>> nodes_;
};

}  // namespace foretoken
