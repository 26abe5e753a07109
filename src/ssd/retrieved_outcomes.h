#pragma once

#include <array>
#include <span>

#include "base/static_vector.h"
#include "speculation/proposal.h"

namespace foretoken {

/// Bonus tokens beside the proposal that retrieval names for one round and sequence, at most ...
inline constexpr int kMaxRetrieved = 24;
/// ... and of these after one node.
inline constexpr int kMaxRetrievedPerNode = 3;

using OutcomeList = StaticVector<Outcome, kMaxRetrieved>;

/// The outcomes of `proposal` that a retrieved tree of the same root expects, likeliest first:
/// where the tree goes along with the proposal to a node, its other tokens after that node.
OutcomeList OutcomesBeside(const Proposal& proposal, const Proposal& retrieved);

/// The speculation cache's second source for one sequence: bonus tokens that retrieval expects,
/// beside the draft's own. A node's F_k places go to whichever source is likelier to be right,
/// which is learned from the outcomes, decayed.
class RetrievedOutcomes {
 public:
  RetrievedOutcomes() { probability_.fill(kFirstProbability); }

  void Clear() { expected_.clear(); }
  /// Takes the outcomes of a new round, likeliest first.
  void Assign(std::span<const Outcome> outcomes);

  /// Of the tokens expected after `node`, those that are not among the draft's `candidates` there;
  /// likeliest first. Observe learns from what was asked for here.
  StaticVector<Token, kMaxRetrievedPerNode> Beside(int node, std::span<const Token> candidates);

  /// How often the i-th token of Beside is the target's, given that its node is reached.
  double probability(int i) const { return probability_[static_cast<std::size_t>(i)]; }

  /// The target's token after a visited node of the round.
  void Observe(int node, Token token);

 private:
  static constexpr double kFirstProbability = 0.1;

  struct Expected {
    Outcome outcome;
    int rank = -1;  // In Beside's answer; -1: not part of one.
  };

  StaticVector<Expected, kMaxRetrieved> expected_;
  std::array<double, kMaxRetrievedPerNode> probability_;
};

}  // namespace foretoken
