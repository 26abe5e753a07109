#pragma once

#include <memory>

#include "assembly/loaded_model.h"
#include "base/result.h"
#include "foretoken/engine.h"
#include "ssd/messages.h"
#include "ssd/speculator_client.h"

namespace foretoken {

/// Starts a speculator on the draft's cores, in a thread of this process that drafts with `draft`
/// or, where `setup` says so, in a process that loads the same model itself; returns when it is
/// ready. It must have loaded the model of that `identity`. `log` is told when it is lost or was
/// restarted.
Result<std::unique_ptr<SpeculatorClient>> StartSpeculator(const DraftOptions& setup,
                                                          ModelIdentity identity,
                                                          std::shared_ptr<LoadedModel> draft,
                                                          const ConfigureMessage& limits,
                                                          const LogSink& log = {});

/// The main loop of a speculator process (`foretoken speculator`, started by the engine itself):
/// loads the draft, serves the shared memory of file descriptor `memory_fd`, returns at shutdown.
Status RunSpeculatorProcess(const ModelSource& source, std::shared_ptr<Device> device,
                            std::optional<Precision> precision, std::optional<KvFormat> kv,
                            int memory_fd);

}  // namespace foretoken
