#pragma once

#include <atomic>
#include <memory>

#include "core/backend/taps.h"
#include "core/draft/drafter.h"
#include "core/ssd/speculator_client.h"
#include "foretoken/engine.h"

namespace foretoken {

/// What drafts with a draft model in an engine, to be exchanged for what another one has. The
/// engine's thread takes the parts between two rounds and leaves its own in their place, then sets
/// `done`: from then on they are the other threads' again.
struct DraftExchange final : NextDraft {
  bool taken() const override { return done.load(std::memory_order_acquire); }

  std::unique_ptr<Drafter> before;           ///< Null where the engine has none.
  std::unique_ptr<SpeculatorClient> during;  ///< Null where the engine has none.
  TapShape taps;                             ///< What both read of the target's passes.
  std::atomic<bool> done = false;
};

}  // namespace foretoken
