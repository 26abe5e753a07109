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
      AddCommand(app, "speculator", "The speculator's process; started by the engine itself");
  Hide(command);
  const OptionGroup add(command);
  auto options = std::make_shared<SpeculatorOptions>();
  add("--draft", &options->model.draft, "VALUE", "Folder or GGUF file of the draft model");
  add("--weights", &options->model.draft_weights, "VALUE", "What its weights become");
  add("--context", &options->model.context, "VALUE", "Positions that it is used for");
  add("--ranking", &options->model.draft_vocabulary.ranking, "VALUE",
      "File of the tokens that it may say");
  add("--most", &options->model.draft_vocabulary.most, "VALUE", "How many of them");
  add("--synthetic", &options->model.draft_synthetic, "VALUE", "Or a named shape");
  add("--target", &options->model.target, "VALUE",
      "Folder or GGUF file of a target with other tokens, to be fitted to");
  add("--own-drafter", &options->model.own_drafter, "VALUE",
      "What in the model's files drafts for it: mtp or medusa; or which of its "
      "layers do: exit=E or skip=WHICH");
  add("--cores", &options->cores, "VALUE", "Cores of the draft")->required();
  add("--precision", &options->model.precision, "VALUE", "auto, bf16, f32 or portable")
      ->check(IsPrecision());
  add("--kv", &options->model.kv, "VALUE", "auto, bf16, f32 or q8_0")->check(IsKvFormat());
  add("--window", &options->model.draft_window, "VALUE", "Last positions that it sees");
  add("--anchors", &options->model.draft_anchors, "VALUE", "And first ones");
  add("--memory-fd", &options->memory_fd, "VALUE", "File descriptor of the shared memory")
      ->required();
  WhenChosen(command, chosen, [options] { return RunSpeculator(*options); });
}

}  // namespace foretoken
