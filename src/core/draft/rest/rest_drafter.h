#pragma once

#include "core/datastore/index/continuation_sampler.h"
#include "core/draft/drafter.h"
#include "core/draft/retrieval/candidate_fusion.h"

namespace foretoken {

/// A baseline: retrieval as REST does it (He et al., 2024). The datastore only; of the longest
/// suffix of 16 to 2 tokens that occurs, the first 5000 continuations in lexicographic order, of
/// which the most frequent prefixes are proposed. Stateless.
class RestDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override;

  /// The same for one context.
  void Propose(SegmentList segments, std::span<const Token> context, int lookahead,
               Proposal* proposal);

 private:
  ContinuationSampler sampler_;
  CandidateFusion fusion_;
};

}  // namespace foretoken
