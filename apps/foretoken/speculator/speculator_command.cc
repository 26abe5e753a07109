#include <memory>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/options/options.h"
#include "door/assembly/speculator_process.h"

namespace foretoken {
namespace {

struct SpeculatorOptions {
  ModelOptions model;
  std::string cores;
  int memory_fd = -1;
};

Result<int> RunSpeculator(const SpeculatorOptions& options) {
  FT_ASSIGN_OR_RETURN(const CoreSet cores, ParseCores(options.cores));
  FT_RETURN_IF_ERROR(RunSpeculatorProcess({.draft = options.model.DraftSource(),
                                           .target = options.model.target,
                                           .precision = ParsePrecision(options.model.precision),
                                           .kv = ParseKvFormat(options.model.kv),
                                           .window = options.model.SeenByDraft(),
                                           .memory_fd = options.memory_fd},
                                          std::make_shared<Device>(cores)));
  return 0;
}

}  // namespace

void AddSpeculatorCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command =
      app->add_subcommand("speculator", "The speculator's process; started by the engine itself");
  command->group("");  // Hidden.
  auto options = std::make_shared<SpeculatorOptions>();
  command->add_option("--draft", options->model.draft, "Folder or GGUF file of the draft model");
  command->add_option("--weights", options->model.draft_weights, "What its weights become");
  command->add_option("--context", options->model.context, "Positions that it is used for");
  command->add_option("--ranking", options->model.draft_vocabulary.ranking,
                      "File of the tokens that it may say");
  command->add_option("--most", options->model.draft_vocabulary.most, "How many of them");
  command->add_option("--synthetic", options->model.draft_synthetic, "Or a named shape");
  command->add_option("--target", options->model.target,
                      "Folder or GGUF file of a target with other tokens, to be fitted to");
  command->add_option("--own-drafter", options->model.own_drafter,
                      "What in the model's files drafts for it: mtp or medusa; or which of its "
                      "layers do: exit=E or skip=WHICH");
  command->add_option("--cores", options->cores, "Cores of the draft")->required();
  command->add_option("--precision", options->model.precision, "auto, bf16, f32 or portable")
      ->check(IsPrecision());
  command->add_option("--kv", options->model.kv, "auto, bf16, f32 or q8_0")->check(IsKvFormat());
  command->add_option("--window", options->model.draft_window, "Last positions that it sees");
  command->add_option("--anchors", options->model.draft_anchors, "And first ones");
  command->add_option("--memory-fd", options->memory_fd, "File descriptor of the shared memory")
      ->required();
  command->callback([options, chosen] { *chosen = [options] { return RunSpeculator(*options); }; });
}

}  // namespace foretoken
