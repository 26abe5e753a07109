#include "core/engine/round/mask_work.h"

#include <algorithm>

namespace foretoken {
namespace {

// Whether the mask is done after `steps` more.
bool PrepareOne(std::int64_t steps, Sequence* sequence) {
  const ConstraintCursor* constraint = sequence->history.constraint();
  sequence->awaits_mask = constraint != nullptr && !constraint->Prepare({}, &steps);
  return !sequence->awaits_mask;
}

}  // namespace

void PrepareMasks(const RunningSet& running) {
  // Most are done, or nearly: what they share the rest with are the others only.
  std::int64_t awaiting = 0;
  for (const auto& sequence : running) {
    if (!PrepareOne(kLeastMaskSteps, sequence.get())) ++awaiting;
  }
  for (const auto& sequence : running) {
    if (sequence->awaits_mask) PrepareOne(kRoundMaskSteps / awaiting, sequence.get());
    const ConstraintCursor* constraint = sequence->history.constraint();
    if (constraint != nullptr && !sequence->awaits_mask && constraint->Refused({})) {
      sequence->finish = FinishReason::kGrammarStuck;
    }
  }
}

std::int64_t ProposalMaskSteps(std::size_t sequences) {
  return std::max(
      kProposalMaskSteps / static_cast<std::int64_t>(std::max<std::size_t>(sequences, 1)),
      kLeastMaskSteps);
}

}  // namespace foretoken
