#pragma once

#include <span>
#include <vector>

#include "draft/retrieval/retrieval_drafter.h"
#include "engine/engine_config.h"
#include "engine/round/retrieval_budget.h"
#include "engine/round/round.h"

namespace foretoken {

/// What proposes on the target's device, between two passes: the drafters of the modes, and those
/// that fill in after a miss of the speculation cache.
class Drafters {
 public:
  /// Adds to `before` what needs the text alone; baselines only as fallbacks.
  Drafters(DraftersById before, const RetrievalBudget& budget, int vocabulary, int max_batch);

  /// Whether there is a drafter for a mode that drafts before the pass.
  bool Has(DrafterId drafter) const { return before_[drafter] != nullptr; }

  /// Proposals for all sequences that draft before the pass and whose prompt is computed.
  void Propose(const RunningSet& running);

  /// The proposal of a sequence whose outcome the speculation cache did not know, where its
  /// fallback gives one at once; else it stays empty.
  void ProposeOnMiss(const RunningSet& running, Sequence* sequence);

  /// Retrieves what may follow the sequence, beside its proposal, and returns how likely each token
  /// is; valid until the next call. `batch`: sequences that are decoded together.
  std::span<const CandidateScore> Retrieve(int batch, Sequence* sequence, Proposal* retrieved);

  /// The sequence has ended, or begins anew.
  void Forget(SequenceId sequence);

  /// What a drafter is told of a sequence among `batch`.
  DraftContext ContextFor(DrafterId drafter, int batch, Sequence* sequence) const;

  RetrievalBudget& budget() { return budget_; }

 private:
  void ProposeWith(DrafterId drafter, const RunningSet& running);

  RetrievalBudget budget_;
  DraftersById before_;
  DraftersById on_miss_;                // Fallbacks.
  RetrievalDrafter* retrieval_;         // ... of which this one also tells of likely outcomes.
  std::vector<DraftContext> contexts_;  // Reused between rounds.
};

}  // namespace foretoken
