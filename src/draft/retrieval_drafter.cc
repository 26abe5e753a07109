#include "draft/retrieval_drafter.h"

#include <algorithm>

#include "draft/speculation_length.h"

namespace foretoken {

void RetrievalDrafter::Propose(std::span<DraftContext> contexts) {
  if (contexts.empty()) return;
  const int longest = knee_rows_ == 0
                          ? kMaxProposal + 1
                          : SpeculationLength(knee_rows_, static_cast<int>(contexts.size()));
  for (DraftContext& context : contexts) {
    const InputTrie& input = tries_.Follow(context.sequence, context.tokens);
    const SegmentList segments =
        context.datastore == nullptr ? SegmentList{} : context.datastore->Segments();
    retriever_.Propose(&input, segments, context.tokens, std::min(context.lookahead + 1, longest),
                       context.proposal);
  }
}

}  // namespace foretoken
