#pragma once

#include <span>

#include "base/result.h"
#include "core/speculation/proposal.h"
#include "foretoken/speculation.h"

namespace foretoken {

/// k of Lossy::kTopKRelaxed at most.
inline constexpr int kMostRelaxed = 64;

/// A token of this probability, e^-26, no noise would draw: filters, grammars and biases have left
/// out what is below it (docs/understand/verification.md), and neither a judge nor a script brings
/// it back.
inline constexpr float kLeastPossible = 5.1e-12F;

/// Refuses a rule whose numbers say nothing, or whose judge is missing or of no use. `spell` names
/// them: lossy_epsilon, lossy_delta, lossy_top_k, lossy_margin, lossy_judge, lossy_approval.
Status CheckLossyRule(const LossyRule& rule, FieldSpelling spell = PlainSpelling);

/// The least probability at which the rule, kTypical or kTopKRelaxed, accepts a proposed token
/// where the target's distribution is `p`, [vocabulary] and summing to 1. Above 0, so that a token
/// that a filter or a grammar has left out is never accepted. With kTypical it is Medusa's
/// min(epsilon, delta exp(-H(p))) (Cai et al., 2024, Section 2.3.1), with kTopKRelaxed the larger
/// of the k-th largest probability and the largest less `margin`.
float LeastAccepted(const LossyRule& rule, std::span<const float> p);

/// The child of `node` that `score` (of a child; 0: it will not do) is largest of, the first of
/// equals; 0: none will do.
template <typename Score>
int BestChild(const Proposal& proposal, int node, const Score& score) {
  int best = 0;
  decltype(score(node)) largest = 0;
  for (int child = node + 1; child <= proposal.size(); ++child) {
    if (proposal.parents[child - 1] != node) continue;
    const auto of_child = score(child);
    if (of_child > largest) {
      best = child;
      largest = of_child;
    }
  }
  return best;
}

/// The likeliest child of `node` that has at least that probability; 0: none has.
int LikeliestChild(const Proposal& proposal, int node, std::span<const float> p, float least);

}  // namespace foretoken
