#include "core/draft/retrieval/retriever.h"

#include "core/draft/retrieval/speculation_length.h"

namespace foretoken {
namespace {

// The paper's weights (Section 3.1.4): the input is overconfident, the less the longer the match.
constexpr int kLongestRetrievedMatch = 4;  // P
constexpr double kInputScale = 0.6;
constexpr double DiscountOf(int match) { return 0.6 + 0.1 * match; }

}  // namespace

void Retriever::Propose(const InputTrie* input, SegmentList segments,
                        std::span<const Token> context, int speculation_length, Proposal* proposal,
                        std::span<const double> least) {
  proposal->Clear();
  if (speculation_length < 2) return;
  sources_.clear();
  SampledTree& stored = sampler_.Sample(segments, context, BranchLength(speculation_length));
  sources_.push_back({&stored, 0, 1.0, DiscountOf(kLongestRetrievedMatch)});
  for (int match = kLongestRetrievedMatch; input != nullptr && match >= 1; --match) {
    const std::uint32_t node = input->Suffix(match);
    if (node == 0) continue;
    sources_.push_back({&input->tree(), node, kInputScale, DiscountOf(match), match});
  }
  fusion_.Fuse(sources_, speculation_length - 1, proposal, least);
  if (proposal->size() > 0) proposal->source = ProposalSource::kRetrieval;
}

}  // namespace foretoken
