#pragma once

#include <cstdint>

#include "foretoken/histogram.h"
#include "ssd/speculator_client.h"

namespace foretoken {

/// Times of rounds in which every decoding sequence had a proposal or none was due; nanoseconds.
struct EngineStats {
  Histogram target;   ///< One target pass.
  Histogram wait;     ///< Waiting for a proposal: drafting in SD, just-in-time drafts in SSD.
  Histogram host;     ///< The rest of a round: choosing, verifying, emitting, planning.
  Histogram hit_gap;  ///< End of a pass to start of the next, all sequences hit.
  Histogram choose;   ///< Noise and choice of all visited rows of a round.
  std::int64_t passes = 0;
  std::int64_t rows = 0;
  DraftPasses draft;  ///< Of the speculator (SSD).
};

}  // namespace foretoken
