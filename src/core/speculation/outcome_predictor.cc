#include "core/speculation/outcome_predictor.h"

#include <algorithm>

namespace foretoken {
namespace {

// What is assumed before the first outcome (about the bundled pair's curves), and how many outcomes
// that is worth.
constexpr double kFirstAcceptance = 0.7;
constexpr double kFirstRank = 0.55;
constexpr double kRankDecay = 0.35;
constexpr double kFirstWeight = 10;

// How many outcomes of a sequence's own what others have taught is worth at most. (Of 20 to 100,
// and memories of 50 to 200 outcomes, all within 0.02 nats an outcome on the bundled and the
// stories pair; learning from 20 outcomes of its own alone lost 0.05 to 0.15.)
constexpr double kWeightOfOthers = 50;

}  // namespace

void OutcomePredictor::Counts::Add(int candidate, double decay) {
  Scale(decay);
  total += 1;
  if (candidate >= 0 && candidate < kMaxRanking) weights[candidate] += 1;
}

void OutcomePredictor::Counts::Scale(double factor) {
  for (double& weight : weights) weight *= factor;
  total *= factor;
}

OutcomePredictor::OutcomePredictor(double memory) : decay_(1 - 1 / memory) {
  accepted_.weights[0] = kFirstAcceptance * kFirstWeight;
  double weight = kFirstRank * kFirstWeight;
  for (int i = 0; i < kMaxRanking; ++i) {
    rejected_.weights[i] = leaf_.weights[i] = weight;
    weight *= kRankDecay;
  }
  accepted_.total = rejected_.total = leaf_.total = kFirstWeight;
}

OutcomePredictor OutcomePredictor::ForSequence() const {
  OutcomePredictor own;
  const auto begin = [](auto* counts, const auto& learned) {
    *counts = learned;
    counts->Scale(std::min(1.0, kWeightOfOthers / learned.total));
  };
  begin(&own.accepted_, accepted_);
  begin(&own.rejected_, rejected_);
  begin(&own.leaf_, leaf_);
  return own;
}

void OutcomePredictor::Observe(bool leaf, int candidate) {
  if (leaf) {
    leaf_.Add(candidate, decay_);
    return;
  }
  accepted_.Add(candidate, decay_);
  if (candidate != 0) rejected_.Add(candidate - 1, decay_);
}

double OutcomePredictor::Probability(bool leaf, int candidate) const {
  if (candidate >= kMaxRanking) return 0;
  if (leaf) return leaf_.Rate(candidate);
  return candidate == 0 ? acceptance() : (1 - acceptance()) * rejected_.Rate(candidate - 1);
}

}  // namespace foretoken
