#pragma once

#include <memory>

#include "draft/drafter.h"
#include "foretoken/mode.h"
#include "ssd/speculator_client.h"

namespace foretoken {

/// Null where there is none.
using DraftersById = ByDrafter<std::unique_ptr<Drafter>>;

/// What an engine can propose with. A mode without its part is one that the engine does not offer;
/// autoregression and drafters that need the text alone are always there.
struct Proposers {
  DraftersById before;                           ///< On the target's device, before a pass.
  std::unique_ptr<SpeculatorClient> speculator;  ///< During a pass.
};

}  // namespace foretoken
