#pragma once

#include <array>
#include <span>

#include "base/types.h"
#include "speculation/proposal.h"
#include "ssd/messages.h"

namespace foretoken {

/// How likely each outcome of a proposal is, learned from the outcomes of one sequence: the
/// acceptance rate a_p, and how often the bonus token was the draft's first, second, ... candidate,
/// apart for k < K (a token was rejected there) and k = K. Decayed, so it follows the text.
class OutcomePredictor {
 public:
  OutcomePredictor();

  /// The deepest accepted node of a proposal of `proposal` tokens was `node`.
  void AddAcceptance(int proposal, int node);

  /// The bonus token was candidate number `rank` of its node (-1: none of them).
  void AddBonus(bool full, int rank);

  double acceptance() const { return acceptance_; }

  /// P(deepest accepted node = `node`) for a proposal of `proposal` tokens.
  double NodeProbability(int proposal, int node) const;

  /// P(bonus = candidate `rank` of the node | that node).
  double RankProbability(bool full, int rank) const { return ranks_[full ? 1 : 0][rank]; }

 private:
  double acceptance_ = 0.7;
  std::array<std::array<double, kMaxFanout>, 2> ranks_;
};

}  // namespace foretoken
