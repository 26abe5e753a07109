#include "core/draft/rest/rest_drafter.h"

#include "core/draft/registry.h"

namespace foretoken {
namespace {

constexpr int kLongestPrefix = 16;
constexpr int kShortestPrefix = 2;
constexpr int kMatches = 5000;
constexpr int kBranchLength = 10;

}  // namespace

void RestDrafter::Propose(std::span<DraftContext> contexts) {
  for (DraftContext& context : contexts) {
    const SegmentList segments =
        context.datastore == nullptr ? SegmentList{} : context.datastore->Segments();
    Propose(segments, context.tokens, context.lookahead, context.proposal);
  }
}

void RestDrafter::Propose(SegmentList segments, std::span<const Token> context, int lookahead,
                          Proposal* proposal) {
  proposal->Clear();
  SampledTree& tree = sampler_.TakeFirst(segments, context, kLongestPrefix, kShortestPrefix,
                                         kMatches, kBranchLength);
  // With neither scale nor discount a node's probability is its share of all continuations.
  const CandidateSource source = {&tree, 0, 1.0, 1.0};
  fusion_.Fuse(std::span(&source, 1), lookahead, proposal);
  if (proposal->size() > 0) proposal->source = ProposalSource::kRetrieval;
}

std::unique_ptr<Drafter> MakeRestDrafter(const DrafterParts&) {
  return std::make_unique<RestDrafter>();
}

}  // namespace foretoken
