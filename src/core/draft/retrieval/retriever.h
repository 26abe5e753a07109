#pragma once

#include <span>

#include "core/datastore/index/continuation_sampler.h"
#include "core/datastore/index/input_trie.h"
#include "core/draft/retrieval/candidate_fusion.h"
#include "core/speculation/proposal.h"
#include "foretoken/types.h"

namespace foretoken {

/// SSSD's retrieval (Algorithms 1 to 3 of the paper): continuations of the end of a context in the
/// sequence itself and in a datastore, fused into one tree. Scratch for one thread; allocates
/// nothing in steady state.
class Retriever {
 public:
  /// Fills `proposal` with up to s_q - 1 candidates, s_q being `speculation_length`. `input` is the
  /// trie of `context`; null leaves that source out, as an empty list of segments leaves out the
  /// datastore. `least` is as in CandidateFusion.
  void Propose(const InputTrie* input, SegmentList segments, std::span<const Token> context,
               int speculation_length, Proposal* proposal, std::span<const double> least = {});

  /// The scores of the last proposal's tokens, in their order. Their kind is 0 for the datastore's,
  /// else the length of the match in the input.
  std::span<const CandidateScore> scores() const { return fusion_.scores(); }

 private:
  ContinuationSampler sampler_;
  CandidateFusion fusion_;
  std::vector<CandidateSource> sources_;
};

}  // namespace foretoken
