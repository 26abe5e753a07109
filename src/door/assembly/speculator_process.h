#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/ssd/messages.h"
#include "core/ssd/speculator_client.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/engine.h"

namespace foretoken {

/// What a speculator drafts with.
struct SpeculatorDraft {
  ModelIdentity identity;               ///< Which it must have loaded.
  std::shared_ptr<LoadedModel> loaded;  ///< Needed in a thread; a process loads it itself.
  std::string target;                   ///< As SpeculatorSetup::target.
};

/// Starts a speculator on the draft's cores, in a thread of this process or, where `setup` says so,
/// in one of its own; returns when it is ready. `log` is told when it is lost or was restarted.
Result<std::unique_ptr<SpeculatorClient>> StartSpeculator(const DraftOptions& setup,
                                                          SpeculatorDraft draft,
                                                          const ConfigureMessage& limits,
                                                          const LogSink& log = {});

/// The main loop of a speculator process (`foretoken speculator`, started by the engine itself):
/// loads the draft of a `setup` that WriteSpeculatorSetup wrote, serves the memory that it shares
/// with the engine under the file descriptor `memory_fd`, and returns at shutdown.
Status RunSpeculatorProcess(std::string_view setup, int memory_fd);

}  // namespace foretoken
