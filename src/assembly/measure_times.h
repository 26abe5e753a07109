#pragma once

#include "assembly/loaded_model.h"
#include "engine/engine.h"

namespace foretoken {

/// Which times an engine needs, and how thoroughly they are measured.
struct TimesNeeded {
  bool rows = false;   ///< What rows cost the target: row_times and knee_rows.
  bool costs = false;  ///< What the planner begins with.
  int most_rows = 1;   ///< That a pass will have; the costs of more need not be known.
  int sweeps = 1;      ///< How often each point is measured; more where noise matters.
};

/// The models of an engine; the drafts are null where there are none.
struct EngineModels {
  const LoadedModel* target = nullptr;
  const LoadedModel* draft_on_target = nullptr;  ///< SD's; on the target's device.
  const LoadedModel* draft = nullptr;            ///< SSD's, on cores of its own.
};

/// The most rows of a pass that is measured for its costs.
int MostMeasuredRows(const TimesNeeded& needed);

/// Measures what is needed and not `known` yet: about a second for each of the models, nothing else
/// running on their cores.
MeasuredTimes MeasureTimes(const EngineModels& models, const TimesNeeded& needed,
                           MeasuredTimes known = {});

}  // namespace foretoken
