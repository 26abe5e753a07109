#pragma once

#include <span>

#include "base/result.h"
#include "foretoken/speculation.h"
#include "speculation/proposal.h"

namespace foretoken {

/// k of Lossy::kTopKRelaxed at most.
inline constexpr int kMostRelaxed = 64;

/// Refuses a rule whose numbers say nothing. `spell` names them: lossy_epsilon, lossy_delta,
/// lossy_top_k, lossy_margin.
Status CheckLossyRule(const LossyRule& rule, FieldSpelling spell = PlainSpelling);

/// The least probability at which the rule, which is not kNone, accepts a proposed token where the
/// target's law is `p`, [vocabulary] and summing to 1. Above 0, so that a token that a filter or a
/// grammar has left out is never accepted. With kTypical it is Medusa's min(epsilon,
/// delta exp(-H(p))) (Cai et al., 2024, Section 2.3.1), with kTopKRelaxed the larger of the k-th
/// largest probability and the largest less `margin`.
float LeastAccepted(const LossyRule& rule, std::span<const float> p);

/// The likeliest child of `node` that has at least that probability; 0: none has.
int LikeliestChild(const Proposal& proposal, int node, std::span<const float> p, float least);

}  // namespace foretoken
