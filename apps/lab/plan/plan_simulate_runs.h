#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "apps/lab/study/simulator_model.h"
#include "base/result.h"

namespace foretoken {

/// A mode, and how SSD is run.
struct SimulatedMode {
  std::string_view name;
  Mode mode;
  /// As the paper's implementation: the cache is completed, a batch waits for misses. Else as
  /// Foretoken's: what is there in time is used, a miss holds nobody else.
  bool whole_cache = false;
};
inline constexpr SimulatedMode kSimulatedModes[] = {{"ar", Mode::kAr},
                                                    {"sd", Mode::kSd},
                                                    {"ssd, whole cache", Mode::kSsd, true},
                                                    {"ssd, anytime", Mode::kSsd}};

struct Deployment {
  int targets = 1;
  int batch = 1;
  int draft_devices = 1;
};

/// What a run may choose and how it is measured.
struct SimulationSetting {
  CostModel model;
  int target_devices = 0;  ///< How many devices one target has; 0: as the input says.
  std::vector<int> lookaheads;
  std::vector<int> mean_fanouts;     ///< Cache budgets, in multiples of K + 1; fan-outs are solved.
  std::optional<int> fanout;         ///< Or this one at every node.
  std::optional<Fallback> fallback;  ///< Nothing: the best.
  double context = 512;
  double channel_us = 0;
  std::uint64_t seed = 1;
  int rounds = 4000;  ///< Verifications of a sequence to simulate, about.
};

struct SimulatedRun {
  std::string_view mode;  ///< Its name.
  SimulatorOptions options;
  SimulatorResult result;
  int devices = 1;  ///< Devices of all targets, and the draft's.
};

/// The fastest of what `setting` leaves open, found by short runs that meet the same luck.
/// Refuses a fallback for which there are no numbers.
Result<SimulatedRun> RunBest(const SimulationSetting& setting, const SimulatedMode& mode,
                             const Deployment& deployment);

}  // namespace foretoken
