#include "draft/retrieval_drafter.h"

#include <algorithm>

namespace foretoken {

void RetrievalDrafter::Propose(std::span<DraftContext> contexts) {
  for (DraftContext& context : contexts) {
    const InputTrie& input = tries_.Follow(context.sequence, context.tokens);
    const SegmentList segments =
        context.datastore == nullptr ? SegmentList{} : context.datastore->Segments();
    retriever_.Propose(&input, segments, context.tokens,
                       std::min(context.lookahead, context.max_nodes) + 1, context.proposal);
  }
}

}  // namespace foretoken
