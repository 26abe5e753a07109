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

std::vector<std::string> SpeculatorCommand(const DraftOptions& setup, const std::string& target) {
  std::vector<std::string> command = {setup.executable, "speculator"};
  if (setup.source.path.empty()) {
    command.insert(command.end(), {"--synthetic", setup.source.synthetic});
  } else {
    command.insert(command.end(), {"--draft", setup.source.path});
    if (!setup.source.weights.empty()) {
      command.insert(command.end(), {"--weights", setup.source.weights});
    }
    command.insert(command.end(), {"--context", std::to_string(setup.source.context)});
    if (!setup.source.own_drafter.empty()) {
      command.insert(command.end(), {"--own-drafter", setup.source.own_drafter});
    }
  }
  const DraftVocabulary& says = setup.source.draft_vocabulary;
  if (!says.ranking.empty()) command.insert(command.end(), {"--ranking", says.ranking});
  if (says.most > 0) command.insert(command.end(), {"--most", std::to_string(says.most)});
  if (!target.empty()) command.insert(command.end(), {"--target", target});
  const std::string precision(setup.precision ? PrecisionName(*setup.precision) : "auto");
  const std::string kv(setup.kv ? KvFormatName(*setup.kv) : "auto");
  command.insert(command.end(),
                 {"--cores", FormatCores(setup.cores), "--precision", precision, "--kv", kv});
  if (setup.window) {
    command.insert(command.end(), {"--window", std::to_string(setup.window->positions), "--anchors",
                                   std::to_string(setup.window->anchors)});
  }
  return command;
}

Result<std::unique_ptr<SpeculatorHost>> StartHost(const DraftOptions& setup,
                                                  SpeculatorDraft draft) {
  const std::string place = "on cores " + FormatCores(setup.cores);
  if (setup.process) return ProcessHost::Start(SpeculatorCommand(setup, draft.target), place);
  return ThreadHost::Start(
      [draft = std::move(draft.loaded)](Channel& channel, const std::atomic<bool>& stop) {
        (void)Serve(*draft, channel, stop);  // Why not, the engine's side says too.
      },
      place);
}

// The draft of a process, as the engine's own process would load it.
Result<std::unique_ptr<LoadedModel>> LoadProcessDraft(const SpeculatorProcessOptions& options,
                                                      std::shared_ptr<Device> device) {
  const auto load = [&](const Result<OpenedModel>& draft) -> Result<std::unique_ptr<LoadedModel>> {
    if (!draft.ok()) return draft.error();
    return LoadModel(*draft, std::move(device), NumericsFor(*draft, options.precision, options.kv));
  };
  if (options.target.empty()) {
    FT_ASSIGN_OR_RETURN(OpenedModel draft, OpenModel(options.draft));
    const ModelConfig alike = draft.config;  // The target's, of random weights too.
    FT_ASSIGN_OR_RETURN(draft, LimitDraft(alike, draft.tokenizer.get(), std::move(draft)));
    if (!options.window) return load(std::move(draft));
    return load(LimitWindow(*options.window, std::move(draft)));
  }
  FT_ASSIGN_OR_RETURN(const OpenedModel target, OpenModel({.path = options.target}));
  return load(
      OpenDraftFor({.config = target.config, .tokenizer = target.tokenizer, .path = options.target},
                   options.draft, /*by_text=*/false, options.window));
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

Status RunSpeculatorProcess(const SpeculatorProcessOptions& options,
                            std::shared_ptr<Device> device) {
  // The engine's end is ours: without it nobody would read what we write.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the program that the user sees.
  FT_ASSIGN_OR_RETURN(const auto memory, ChannelMemory::Attach(options.memory_fd));
  FT_ASSIGN_OR_RETURN(const auto draft, LoadProcessDraft(options, std::move(device)));
  RingChannel channel(memory->to_engine(), memory->to_speculator());
  const std::atomic<bool> never = false;
  return Serve(*draft, channel, never);
}

}  // namespace foretoken
