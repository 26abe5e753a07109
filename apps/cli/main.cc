#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "cli/common/help_formatter.h"
#include "cli/common/terminal.h"
#include "cli/options/options.h"

namespace foretoken {
namespace {

constexpr int kCheckFailed = 1;
constexpr int kBadInput = 2;

// What CLI11 says, as one line.
std::string OneLine(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (message.ends_with(' ') || message.ends_with('.')) message.pop_back();
  return message;
}

int Main(int argc, char** argv) {
  CLI::App app{"Foretoken: exact speculative decoding, with the same tokens in every mode",
               "foretoken"};
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "foretoken " FORETOKEN_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Modes: ar (autoregressive), sd (speculative), ssd (speculative speculative).\n"
      "`foretoken COMMAND --help` lists a command's options. Without --target and --draft the "
      "bundled models are used.\n"
      "Exit codes: 0 good, 1 a check failed, 2 bad usage or input.");
  CommandBody chosen;
  for (const auto add :
       {AddDemoCommand, AddRunCommand, AddChatCommand, AddServeCommand, AddBenchCommand,
        AddVerifyCommand, AddAuditCommand, AddInspectCommand, AddDevicesCommand,
        AddCalibrateCommand, AddPlanCommand, AddDatastoreCommand, AddSpeculatorCommand}) {
    add(&app, &chosen);
  }

  std::vector<std::string> arguments = ExpandFamiliarFlags(argc, argv);
  arguments.erase(arguments.begin());
  const auto is_named = [&arguments](const CLI::App* command) {
    return command->get_name() == arguments[0];
  };
  if (!arguments.empty() && !arguments[0].starts_with('-') &&
      app.get_subcommands(is_named).empty()) {
    PrintError(fmt::format("there is no command '{}'; --help lists them", arguments[0]));
    return kBadInput;
  }
  std::reverse(arguments.begin(), arguments.end());  // As CLI11 wants them.
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    PrintError(OneLine(error.what()) + "; --help tells more");
    return kBadInput;
  }
  const Result<int> result = chosen();
  if (result.ok()) return *result;
  PrintError(result.error().message);
  return result.error().code == ErrorCode::kInvalidInput ? kBadInput : kCheckFailed;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  try {
    return foretoken::Main(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a library's surprise.
    foretoken::PrintError(error.what());
    return 1;
  }
}
