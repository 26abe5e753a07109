#pragma once

#include <cstddef>
#include <cstdint>

#include "core/engine/round/round.h"
#include "core/engine/scheduler.h"

namespace foretoken {

// What grammars may take of the engine's thread. A mask may take far longer than a round: it is
// then made over several, which its sequence sits out while the others go on. A step is about 10
// ns.

/// Steps in a round on the masks that its next tokens are chosen under.
inline constexpr std::int64_t kRoundMaskSteps = 1 << 18;
/// Steps out of kRoundMaskSteps that each sequence has, whatever the others need.
inline constexpr std::int64_t kLeastMaskSteps = 1 << 12;
/// Steps in a round on masks behind proposals.
inline constexpr std::int64_t kProposalMaskSteps = 1 << 17;

/// Before the pass: works on the masks of the running sequences' next tokens. Those whose mask is
/// not done await it (`awaits_mask`); those whose grammar is too ambiguous to go on are finished.
void PrepareMasks(const RunningSet& running);

/// The share of kProposalMaskSteps that each of `sequences` has.
std::int64_t ProposalMaskSteps(std::size_t sequences);

}  // namespace foretoken
