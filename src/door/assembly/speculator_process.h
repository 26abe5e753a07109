#pragma once

#include <memory>
#include <optional>
#include <string>

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
  /// Path of the target's files, where the draft is to be fitted to its tokens; else empty.
  std::string target;
};

/// Starts a speculator on the draft's cores, in a thread of this process or, where `setup` says so,
/// in one of its own; returns when it is ready. `log` is told when it is lost or was restarted.
Result<std::unique_ptr<SpeculatorClient>> StartSpeculator(const DraftOptions& setup,
                                                          SpeculatorDraft draft,
                                                          const ConfigureMessage& limits,
                                                          const LogSink& log = {});

/// What a speculator's process is told on its command line.
struct SpeculatorProcessOptions {
  ModelSource draft;
  std::string target;  ///< As SpeculatorDraft::target.
  std::optional<Precision> precision;
  std::optional<KvFormat> kv;
  std::optional<DraftWindow> window;  ///< DraftOptions::window
  int memory_fd = -1;                 ///< File descriptor of the memory shared with the engine.
};

/// The main loop of a speculator process (`foretoken speculator`, started by the engine itself):
/// loads the draft, serves the shared memory, returns at shutdown.
Status RunSpeculatorProcess(const SpeculatorProcessOptions& options,
                            std::shared_ptr<Device> device);

}  // namespace foretoken
