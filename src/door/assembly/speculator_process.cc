#include "door/assembly/speculator_process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <utility>

#include "core/ssd/speculator.h"
#include "core/transport/process_host.h"
#include "core/transport/ring_channel.h"
#include "core/transport/thread_host.h"
#include "door/assembly/fit_draft.h"
#include "door/assembly/open_draft.h"
#include "door/assembly/speculator_setup.h"

namespace foretoken {
namespace {

Status Serve(const LoadedModel& draft, Channel& channel, const std::atomic<bool>& stop) {
  draft.device->Adopt();
  CompileConstraint compile;
  if (draft.constraints != nullptr) {
    compile = [&draft](std::string_view grammar) { return draft.constraints->Compile(grammar); };
  }
  Speculator speculator(draft.model.get(), &channel, std::move(compile), draft.identity);
  return speculator.Run(
      [](void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(); },
      const_cast<std::atomic<bool>*>(&stop));
}

Result<std::unique_ptr<SpeculatorHost>> StartHost(const DraftOptions& setup,
                                                  SpeculatorDraft draft) {
  const std::string place = "on cores " + FormatCores(setup.cores);
  if (setup.process) {
    return ProcessHost::Start(
        {setup.executable, "speculator", "--setup", WriteSpeculatorSetup({setup, draft.target})},
        place);
  }
  return ThreadHost::Start(
      [draft = std::move(draft.loaded)](Channel& channel, const std::atomic<bool>& stop) {
        (void)Serve(*draft, channel, stop);  // Why not, the engine's side says too.
      },
      place);
}

// The draft of a process, as the engine's own process would load it.
Result<std::unique_ptr<LoadedModel>> LoadProcessDraft(const SpeculatorSetup& setup) {
  const auto& [options, target_path] = setup;
  const auto load = [&](const Result<OpenedModel>& draft) -> Result<std::unique_ptr<LoadedModel>> {
    if (!draft.ok()) return draft.error();
    return LoadModel(*draft, std::make_shared<Device>(options.cores),
                     NumericsFor(*draft, options.precision, options.kv));
  };
  if (target_path.empty()) {
    FT_ASSIGN_OR_RETURN(OpenedModel draft, OpenModel(options.source));
    const ModelConfig alike = draft.config;  // The target's, of random weights too.
    FT_ASSIGN_OR_RETURN(draft, LimitDraft(alike, draft.tokenizer.get(), std::move(draft)));
    if (!options.window) return load(std::move(draft));
    return load(LimitWindow(*options.window, std::move(draft)));
  }
  FT_ASSIGN_OR_RETURN(const OpenedModel target, OpenModel({.path = target_path}));
  return load(
      OpenDraftFor({.config = target.config, .tokenizer = target.tokenizer, .path = target_path},
                   options.source, /*by_text=*/false, options.window));
}

}  // namespace

Result<std::unique_ptr<SpeculatorClient>> StartSpeculator(const DraftOptions& setup,
                                                          SpeculatorDraft draft,
                                                          const ConfigureMessage& limits,
                                                          const LogSink& log) {
  const ModelIdentity identity = draft.identity;
  FT_ASSIGN_OR_RETURN(auto host, StartHost(setup, std::move(draft)));
  auto client = std::make_unique<SpeculatorClient>(
      std::move(host), limits,
      [log](const std::string& warning) {
        if (log) log(warning);
      },
      identity);
  FT_RETURN_IF_ERROR(client->WaitReady());
  return client;
}

Status RunSpeculatorProcess(std::string_view setup, int memory_fd) {
  // The engine's end is ours: without it nobody would read what we write.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the program that the user sees.
  FT_ASSIGN_OR_RETURN(const SpeculatorSetup read, ReadSpeculatorSetup(setup));
  FT_ASSIGN_OR_RETURN(const auto memory, ChannelMemory::Attach(memory_fd));
  FT_ASSIGN_OR_RETURN(const auto draft, LoadProcessDraft(read));
  RingChannel channel(memory->to_engine(), memory->to_speculator());
  const std::atomic<bool> never = false;
  return Serve(*draft, channel, never);
}

}  // namespace foretoken
