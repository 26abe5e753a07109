#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "foretoken/engine.h"

namespace foretoken {

/// What a speculator's process must know to load its draft.
struct SpeculatorSetup {
  DraftOptions draft;  ///< Only the fields that loading depends on cross to the process.
  /// The path of the target's files, where the draft is to be fitted to its tokens; else empty.
  std::string target;
};

/// The setup as a JSON object, for the process's command line.
std::string WriteSpeculatorSetup(const SpeculatorSetup& setup);

/// Reads such a text back. Fields that it lacks keep their defaults, but it must name cores.
Result<SpeculatorSetup> ReadSpeculatorSetup(std::string_view text);

}  // namespace foretoken
