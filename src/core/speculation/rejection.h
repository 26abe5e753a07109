#pragma once

#include <span>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/speculation/draft_distribution.h"
#include "core/speculation/proposal.h"

namespace foretoken {

/// p after a node, and what rejected children leave of it: ((p - q)+ renormalised), once for every
/// rejection. Borrows `p` [vocabulary], which sums to 1, and overwrites it with weights.
class ResidualDistribution {
 public:
  explicit ResidualDistribution(std::span<float> p) : weights_(p) {}

  double ProbabilityOf(Token token) const { return weights_[token] / mass_; }
  /// The child `token` was drawn from `q` without the tokens in `earlier` and was rejected.
  void Reject(const DraftDistribution& q, std::span<const Token> earlier, Token token);
  /// Proportional to the distribution that a bonus token must be drawn from; empty where no mass is
  /// left, which only rounding can bring about and which stands for p itself.
  std::span<float> weights() { return mass_ > 0 ? weights_ : std::span<float>(); }

 private:
  std::span<float> weights_;
  double mass_ = 1;
};

/// q(token), the probability that a child drawn without the tokens in `earlier` had.
double DraftProbability(const DraftDistribution& q, std::span<const Token> earlier, Token token,
                        std::size_t vocabulary);

/// Rejection verification: of a chain as in Leviathan et al., of a tree by the same rule child by
/// child, each against what the ones before left of p. Exact for the distributions actually drawn
/// from.
///
/// - `distribution_of(node)` gives p after `node` as span<float> [vocabulary], to be overwritten;
///   it is asked only where a node has children.
/// - `uniform(node, index)` gives the variable in (0, 1) that decides on the node's `index`-th
///   child; it must be independent of the children and of everything else.
/// - `bonus(node, weights)` draws the token that follows `node`, from p where `weights` is empty
///   and from the normalised weights elsewhere. Never a rejected child.
/// - `may_enter(node, child)` is asked where a child was accepted. Where it is false, because to go
///   on behind the child would take too long, the child's token is the bonus token.
template <typename DistributionOf, typename Uniform, typename Bonus, typename MayEnter>
Outcome VerifyRejection(const Proposal& proposal, const DraftDistributions& distributions,
                        DistributionOf&& distribution_of, Uniform&& uniform, Bonus&& bonus,
                        MayEnter&& may_enter) {
  Outcome outcome;
  for (;;) {
    const int node = outcome.node;
    StaticVector<int, kMaxProposal> children;
    for (int i = node; i < proposal.size(); ++i) {
      if (proposal.parents[i] == node) children.push_back(i + 1);
    }
    std::span<float> p;
    if (!children.empty()) p = distribution_of(node);
    ResidualDistribution residual(p);
    const DraftDistribution q = distributions.at(node);
    StaticVector<Token, kMaxProposal> rejected;
    for (const int child : children) {
      const Token token = proposal.tokens[child - 1];
      const double ratio =
          residual.ProbabilityOf(token) / DraftProbability(q, rejected, token, p.size());
      if (uniform(node, Int(rejected.size())) < ratio) {
        outcome.node = child;
        break;
      }
      residual.Reject(q, rejected, token);
      rejected.push_back(token);
      if (residual.weights().empty()) break;
    }
    if (outcome.node != node) {
      if (may_enter(node, static_cast<int>(outcome.node))) continue;
      outcome.bonus = proposal.tokens[outcome.node - 1];
      outcome.node = node;
      return outcome;
    }
    outcome.bonus = bonus(node, rejected.empty() ? std::span<float>() : residual.weights());
    return outcome;
  }
}

template <typename DistributionOf, typename Uniform, typename Bonus>
Outcome VerifyRejection(const Proposal& proposal, const DraftDistributions& distributions,
                        DistributionOf&& distribution_of, Uniform&& uniform, Bonus&& bonus) {
  return VerifyRejection(proposal, distributions, distribution_of, uniform, bonus,
                         [](int, int) { return true; });
}

}  // namespace foretoken
