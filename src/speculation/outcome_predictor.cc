#include "speculation/outcome_predictor.h"

namespace foretoken {
namespace {

constexpr double kDecay = 0.95;
// What is assumed before the first outcome: about the bundled pair's curves.
constexpr double kFirstRank = 0.55;
constexpr double kRankDecay = 0.35;

void Update(std::array<double, kMaxRanking>* ranks, int rank) {
  for (int i = 0; i < kMaxRanking; ++i) {
    (*ranks)[i] = kDecay * (*ranks)[i] + (1 - kDecay) * (i == rank ? 1 : 0);
  }
}

}  // namespace

OutcomePredictor::OutcomePredictor() {
  double probability = kFirstRank;
  for (int i = 0; i < kMaxRanking; ++i) {
    rejected_[i] = leaf_[i] = probability;
    probability *= kRankDecay;
  }
}

void OutcomePredictor::Observe(bool leaf, int candidate) {
  if (leaf) {
    Update(&leaf_, candidate);
    return;
  }
  acceptance_ = kDecay * acceptance_ + (1 - kDecay) * (candidate == 0 ? 1 : 0);
  if (candidate != 0) Update(&rejected_, candidate < 0 ? -1 : candidate - 1);
}

double OutcomePredictor::Probability(bool leaf, int candidate) const {
  if (candidate >= kMaxRanking) return 0;
  if (leaf) return leaf_[candidate];
  return candidate == 0 ? acceptance_ : (1 - acceptance_) * rejected_[candidate - 1];
}

}  // namespace foretoken
