#pragma once

#include <algorithm>
#include <span>

#include "base/static_vector.h"
#include "core/draft/retrieval/track_record.h"
#include "core/speculation/proposal.h"

namespace foretoken {

/// Bonus tokens beside the proposal that retrieval names for one round and sequence, at most.
inline constexpr int kMaxRetrieved = 24;
/// Bonus tokens that retrieval names after one node, at most.
inline constexpr int kMaxRetrievedPerNode = 3;

/// An outcome that retrieval expects.
struct RetrievedOutcome {
  Outcome outcome;
  float score = 0;  ///< The bonus token's pseudo-probability, given that its node is reached.
};
using OutcomeList = StaticVector<RetrievedOutcome, kMaxRetrieved>;

/// The outcomes of `proposal` that a retrieved tree of the same root expects, likeliest first:
/// where the tree goes along with the proposal to a node, its other tokens after that node.
/// `scores` are the retrieved tokens'.
OutcomeList OutcomesBeside(const Proposal& proposal, const Proposal& retrieved,
                           std::span<const CandidateScore> scores);

/// How often tokens that retrieval expects, and the draft has not among those that it would prepare
/// for, are the target's: by their score, apart for nodes with children (where the proposal's token
/// has to be wrong first) and leaves. Of all sequences of a speculator, decayed.
class RetrievalRates {
 public:
  double Chance(bool leaf, double score) const {
    // Before anything was seen a tenth of the score is believed: the draft has thought of what is
    // likely, and a place that goes to a wrong guess is taken from one of its own.
    constexpr double kFirstTrust = 0.1;
    constexpr double kPriorSeen = 16;
    return tallies_.Chance(leaf ? 1 : 0, score, kFirstTrust * std::clamp(score, 0.0, 1.0),
                           kPriorSeen);
  }
  void Observe(bool leaf, double score, bool right) { tallies_.Add(leaf ? 1 : 0, score, right); }

 private:
  ScoreTallies<2, 8> tallies_;
};

/// The speculation cache's second source for one sequence and round: bonus tokens that retrieval
/// expects, beside the draft's own. A node's F_k places go to whichever source is likelier to be
/// right.
class RetrievedOutcomes {
 public:
  struct Candidate {
    Token token = -1;
    double chance = 0;  ///< The chance that it is the target's, given that its node is reached.
  };

  void Clear() { expected_.clear(); }
  /// Takes the outcomes of a new round.
  void Assign(std::span<const RetrievedOutcome> outcomes);

  /// The tokens expected after `node` that are not among the draft's `candidates` there, likeliest
  /// first. Observe learns from what was asked for here.
  StaticVector<Candidate, kMaxRetrievedPerNode> Beside(int node, bool leaf,
                                                       std::span<const Token> candidates,
                                                       const RetrievalRates& rates);

  /// The target's token after a visited node of the round.
  void Observe(int node, bool leaf, Token token, RetrievalRates* rates) const;

 private:
  struct Expected {
    RetrievedOutcome retrieved;
    bool asked = false;  // Part of Beside's answer.
  };

  StaticVector<Expected, kMaxRetrieved> expected_;
};

}  // namespace foretoken
