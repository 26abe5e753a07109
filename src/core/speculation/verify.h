#pragma once

#include <concepts>

#include "core/speculation/proposal.h"

namespace foretoken {

/// Shared-noise verification (docs/understand/verification.md) of a chain or a tree. `choose(node)`
/// returns x_t, the target's token after `node` on the accepted path, and is called once per
/// visited node, root first. Steps to the child that carries x_t; where there is none, x_t is the
/// bonus token. Pure: emitted tokens depend only on what `choose` returns, never on what was
/// proposed. A child that `may_enter(child)` is false for, because choosing behind it would take
/// too long, is not stepped to: its token is then the bonus token.
template <std::invocable<int> Choose, std::predicate<int> MayEnter>
Outcome VerifySharedNoise(const Proposal& proposal, Choose&& choose, MayEnter&& may_enter) {
  Outcome outcome;
  for (;;) {
    outcome.bonus = choose(static_cast<int>(outcome.node));
    const int child = proposal.ChildWith(outcome.node, outcome.bonus);
    if (child == 0 || !may_enter(child)) return outcome;
    outcome.node = child;
  }
}

template <std::invocable<int> Choose>
Outcome VerifySharedNoise(const Proposal& proposal, Choose&& choose) {
  return VerifySharedNoise(proposal, choose, [](int) { return true; });
}

}  // namespace foretoken
