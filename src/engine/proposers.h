#pragma once

#include <array>
#include <memory>

#include "draft/drafter.h"
#include "speculation/plan.h"
#include "ssd/speculator_client.h"

namespace foretoken {

/// By Mode; null where the mode has none.
using DraftersByMode = std::array<std::unique_ptr<Drafter>, kModes>;

/// What an engine can propose with. A mode without its part is one that the engine does not offer;
/// autoregression and prompt lookup need none.
struct Proposers {
  DraftersByMode drafters;                       ///< On the target's device.
  std::unique_ptr<SpeculatorClient> speculator;  ///< Mode::kSsd.

  std::unique_ptr<Drafter>& of(Mode mode) { return drafters[static_cast<std::size_t>(mode)]; }
};

}  // namespace foretoken
