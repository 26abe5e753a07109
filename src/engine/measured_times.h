#pragma once

#include "prediction/cost_model.h"

namespace foretoken {

/// What is known of the times of an engine's passes before its first one: measured once, and good
/// for every engine with the same models on the same cores. Empty parts were not measured.
struct MeasuredTimes {
  TimeTable row_times;  ///< Of the target's passes, for speculation lengths that pay.
  int knee_rows = 0;    ///< I_knee, for speculation lengths by the knee.
  CostModel costs;      ///< What the planner begins with.
};

}  // namespace foretoken
