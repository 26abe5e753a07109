#pragma once

#include <string>
#include <string_view>

#include "apps/lab/study/simulator.h"
#include "core/prediction/cost_model.h"
#include "core/prediction/predict.h"

namespace foretoken {

/// The process that Predict predicts, for the simulator: one target, one draft device, an anytime
/// cache, a just-in-time draft that holds nobody up. Modes kAr, kSd and kSsd; needs CanPredict. A
/// fallback that does not always propose (coverage) is one whose first token fails more often.
SimulatorOptions SimulatorFor(const CostModel& model, const SpeculationPlan& plan,
                              const Workload& load);

/// A published setting whose times and rates are known or can be fitted.
struct SimulatorPreset {
  /// One line; what was fitted to what is in docs/understand/simulation.md.
  std::string description;
  CostModel model;
  int target_devices = 1;  ///< How many devices one target has.
};

/// "paper-70b": Llama-3.1-70B on four H100s, Llama-3.2-1B on a fifth; "paper-32b": Qwen3-32B and
/// Qwen3-0.6B likewise. Times are the roofline's plus an overhead that fits what the paper
/// measured. Unknown names list the known ones.
Result<SimulatorPreset> FindSimulatorPreset(std::string_view name);

}  // namespace foretoken
