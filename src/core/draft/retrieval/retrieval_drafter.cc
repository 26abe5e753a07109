#include "core/draft/retrieval/retrieval_drafter.h"

#include <algorithm>

#include "core/draft/registry.h"
#include "core/speculation/plan.h"

namespace foretoken {
namespace {

// Candidates of a pseudo-probability this far below the price are not looked at: the record would
// have to say that such come true four times as often.
constexpr double kLeastOfPrice = 0.25;

}  // namespace

void RetrievalDrafter::Propose(std::span<DraftContext> contexts) {
  for (DraftContext& context : contexts) {
    const InputTrie& input = tries_.Follow(context.sequence, context.tokens);
    const SegmentList segments =
        context.datastore == nullptr ? SegmentList{} : context.datastore->Segments();
    if (!context.row_prices.empty()) {
      ProposeAtPrice(input, segments, context);
    } else {
      retriever_.Propose(&input, segments, context.tokens,
                         std::min(context.lookahead, context.max_nodes) + 1, context.proposal);
    }
  }
}

void RetrievalDrafter::ProposeAtPrice(const InputTrie& input, SegmentList segments,
                                      const DraftContext& context) {
  Forecast& forecast = forecasts_[context.sequence];
  forecast.Settle(context.tokens, &record_);
  least_.clear();
  for (const double price : context.row_prices) least_.push_back(kLeastOfPrice * price);
  retriever_.Propose(&input, segments, context.tokens, kMaxAutoSpeculationLength, context.proposal,
                     least_);
  if (!forecast.pending()) {
    forecast.Make(context.tokens.size(), *context.proposal, retriever_.scores());
  }
  record_.KeepWorthwhile(retriever_.scores(), context.row_prices, context.lookahead,
                         context.max_nodes, context.proposal);
}

void RetrievalDrafter::Forget(SequenceId sequence) {
  tries_.Forget(sequence);
  forecasts_.erase(sequence);
}

std::unique_ptr<Drafter> MakeRetrievalDrafter(const DrafterParts&) {
  return std::make_unique<RetrievalDrafter>();
}

}  // namespace foretoken
