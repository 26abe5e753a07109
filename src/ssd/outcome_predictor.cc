#include "ssd/outcome_predictor.h"

#include <algorithm>
#include <cmath>

namespace foretoken {
namespace {

constexpr double kDecay = 0.95;
// What is assumed before the first outcome: about the bundled pair's curves.
constexpr double kFirstRank = 0.55;
constexpr double kRankDecay = 0.35;

}  // namespace

OutcomePredictor::OutcomePredictor() {
  for (auto& ranks : ranks_) {
    double probability = kFirstRank;
    for (double& rank : ranks) {
      rank = probability;
      probability *= kRankDecay;
    }
  }
}

void OutcomePredictor::AddAcceptance(int proposal, int node) {
  const int trials = std::min(proposal, node + 1);
  for (int i = 0; i < trials; ++i) {
    acceptance_ = kDecay * acceptance_ + (1 - kDecay) * (i < node ? 1 : 0);
  }
}

void OutcomePredictor::AddBonus(bool full, int rank) {
  auto& ranks = ranks_[full ? 1 : 0];
  for (int i = 0; i < kMaxFanout; ++i) {
    ranks[i] = kDecay * ranks[i] + (1 - kDecay) * (i == rank ? 1 : 0);
  }
}

double OutcomePredictor::NodeProbability(int proposal, int node) const {
  const double reached = std::pow(acceptance_, node);
  return node == proposal ? reached : reached * (1 - acceptance_);
}

}  // namespace foretoken
