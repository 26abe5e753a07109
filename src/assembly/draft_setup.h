#pragma once

#include <cstdint>
#include <string>

#include "assembly/loaded_model.h"
#include "base/cores.h"
#include "foretoken/log_sink.h"

namespace foretoken {

/// The draft side of an engine: which model, and for SSD on which cores and in which process.
struct DraftSetup {
  ModelSource source;
  CoreSet cores;  ///< SSD only; SD drafts on the target's cores.
  Precision precision = Precision::kBF16;
  bool process = false;       ///< SSD: a separate process over shared memory.
  std::string executable;     ///< The foretoken program, for `process`.
  std::int64_t delay_us = 0;  ///< Tests: the speculator sleeps up to this long between its steps.
  LogSink log;                ///< Told when the speculator is lost or was restarted.
};

}  // namespace foretoken
