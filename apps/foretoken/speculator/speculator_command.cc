#include <memory>
#include <string>

#include "apps/foretoken/common/commands.h"
#include "door/assembly/speculator_process.h"

namespace foretoken {
namespace {

struct SpeculatorOptions {
  std::string setup;
  int memory_fd = -1;
};

}  // namespace

void AddSpeculatorCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command =
      AddCommand(app, "speculator", "The speculator's process; started by the engine itself");
  Hide(command);
  const OptionGroup add(command);
  auto options = std::make_shared<SpeculatorOptions>();
  add("--setup", &options->setup, "JSON", "Its draft and how that is loaded")->required();
  add("--memory-fd", &options->memory_fd, "VALUE", "File descriptor of the shared memory")
      ->required();
  WhenChosen(command, chosen, [options]() -> Result<int> {
    FT_RETURN_IF_ERROR(RunSpeculatorProcess(options->setup, options->memory_fd));
    return kSucceeded;
  });
}

}  // namespace foretoken
