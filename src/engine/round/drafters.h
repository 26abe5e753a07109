#pragma once

#include <span>
#include <vector>

#include "draft/drafter.h"
#include "draft/retrieval/retrieval_drafter.h"
#include "engine/proposers.h"
#include "engine/round/retrieval_budget.h"
#include "engine/round/round.h"

namespace foretoken {

/// What a drafter is told of a sequence among `batch` that are decoded together.
DraftContext ContextFor(const RetrievalBudget& budget, int batch, Sequence* sequence);

/// What proposes on the target's device, between two passes: the drafters of the modes, and those
/// that fill in after a miss of the speculation cache.
class Drafters {
 public:
  /// Adds to `before` what needs the text alone; baselines only as fallbacks.
  Drafters(DraftersById before, int vocabulary, int max_batch);

  /// Whether there is a drafter for a mode that drafts before the pass.
  bool Has(DrafterId drafter) const { return before_[drafter] != nullptr; }

  /// Proposals for all sequences that draft before the pass and whose prompt is computed.
  void Propose(const RunningSet& running, RetrievalBudget* budget);

  /// The proposal of a sequence whose outcome the speculation cache did not know, where its
  /// fallback gives one at once; else it stays empty.
  void ProposeOnMiss(const RunningSet& running, RetrievalBudget* budget, Sequence* sequence);

  /// Retrieves what may follow the sequence, beside its proposal, and returns how likely each token
  /// is; valid until the next call.
  std::span<const CandidateScore> Retrieve(const RetrievalBudget& budget, int batch,
                                           Sequence* sequence, Proposal* retrieved);

  /// The sequence has ended, or begins anew.
  void Forget(SequenceId sequence);

 private:
  void ProposeWith(DrafterId drafter, const RunningSet& running, RetrievalBudget* budget);
  void RetrieveOnMiss(const RunningSet& running, RetrievalBudget* budget, Sequence* sequence);

  DraftersById before_;
  DraftersById on_miss_;        // Fallbacks, but for retrieval.
  RetrievalDrafter retrieval_;  // Beside the draft: a fallback, and a source of likely outcomes.
  std::vector<DraftContext> contexts_;  // Reused between rounds.
};

}  // namespace foretoken
