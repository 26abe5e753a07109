#pragma once

#include <array>

#include "speculation/plan.h"

namespace foretoken {

/// How likely each outcome of a proposal is, learned from the outcomes of one sequence. The draft's
/// candidates after a node are numbered: its children in the tree first, in their order, then the
/// draft's other tokens, best first. Learned are the acceptance rate a_p (candidate 0 of a node
/// with children) and how often the others were it, apart for nodes with children (k < K) and
/// leaves (k = K). Decayed, so it follows the text.
class OutcomePredictor {
 public:
  OutcomePredictor();

  /// The target's token after a visited node was that candidate; -1: none of them.
  void Observe(bool leaf, int candidate);

  /// a_p: how often the first child is right.
  double acceptance() const { return acceptance_; }

  /// P(the target's token is that candidate | the node is reached). At a node with c children the
  /// candidates below c are the children's acceptance, those from c on the bonus token's.
  double Probability(bool leaf, int candidate) const;

 private:
  double acceptance_ = 0.7;
  std::array<double, kMaxRanking> rejected_;  // Candidates 1, 2, ..., given that 0 was wrong.
  std::array<double, kMaxRanking> leaf_;      // Candidates 0, 1, ...
};

}  // namespace foretoken
