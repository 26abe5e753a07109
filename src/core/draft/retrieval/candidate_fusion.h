#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "core/datastore/index/sampled_tree.h"
#include "core/datastore/index/suffix_automaton.h"
#include "core/datastore/index/token_tree.h"
#include "core/speculation/proposal.h"

namespace foretoken {

/// Candidates below one node of a counted tree, and how far their frequencies are believed.
struct CandidateSource {
  std::variant<const TokenTree*, SampledTree*, const SuffixAutomaton*> tree;
  std::uint32_t node = 0;
  double scale = 1;     ///< The factor of a child's frequency.
  double discount = 1;  ///< The factor of every further level.
  int kind = 0;         ///< The caller's, for CandidateScore.
};

/// What was thought of a candidate when it was proposed.
struct CandidateScore {
  double probability = 0;  ///< Pseudo-probability: that it and all above it come true.
  int kind = 0;            ///< The kind of the source that had it first.
};

/// Algorithm 3 of the SSSD paper: merges candidates of several sources into one tree, likeliest
/// first. A candidate's pseudo-probability is its count over that of the source's node, times
/// `scale`, times `discount` per level below the first. Scratch for one thread; allocates nothing
/// in steady state.
class CandidateFusion {
 public:
  /// Fills `proposal` with the `most` likeliest candidates or all that there are. `least[i]` is the
  /// least pseudo-probability of the i-th, at which it ends; the last one's holds beyond. Ties go
  /// to the shallower, then to the earlier source, then to the lower token. The source of the
  /// proposal is left as it was.
  void Fuse(std::span<const CandidateSource> sources, int most, Proposal* proposal,
            std::span<const double> least = {});

  /// The scores of the last proposal's tokens, in their order.
  std::span<const CandidateScore> scores() const { return scores_; }

 private:
  struct Candidate {
    double probability;
    std::int16_t depth;
    std::int16_t source;
    Token token;
    std::uint32_t node;   // In the source's tree.
    std::int16_t parent;  // In the proposal.
  };
  static bool Later(const Candidate& a, const Candidate& b);

  void AppendChildren(const CandidateSource& source, const Candidate& parent, double factor);

  std::vector<Candidate> queue_;  // A heap, likeliest first.
  std::vector<CandidateScore> scores_;
};

}  // namespace foretoken
