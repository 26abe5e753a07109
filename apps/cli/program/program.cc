#include "cli/program/program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/common/commands.h"
#include "cli/common/terminal.h"
#include "cli/program/arguments.h"
#include "cli/program/help_formatter.h"
#include "cli/program/settings.h"

namespace foretoken {
namespace {

constexpr const char* kFooter =
    "Modes, all of which give the same text: auto (the fastest of the others, chosen as it goes), "
    "ar (one token at a time), sd (a draft model proposes, the target checks), ssd (the draft "
    "prepares proposals while the target checks), ngram (proposes what the text repeats), sssd "
    "(the same, and from a datastore); to compare with: rest (a datastore alone), trie (a tree of "
    "what was seen), anpd, suffix, recycle, racer, jacobi, lookahead, protocol (what a grammar "
    "forces, and copies); made of others: staged, ensemble.\n"
    "`foretoken COMMAND --help` shows a command's everyday options, --help-all all of them. "
    "Without "
    "--target and --draft the bundled models are used.\n"
    "Exit codes: 0 good, 1 a check or a write failed, 2 bad usage or input.";

// The commands, in the order of the help.
void AddCommands(CLI::App* app, CommandBody* chosen) {
  for (const auto add :
       {AddRunCommand,         AddChatCommand,       AddServeCommand,      AddDemoCommand,
        AddBenchCommand,       AddVerifyCommand,     AddCheckCommand,      AddAuditCommand,
        AddPerplexityCommand,  AddCaptureCommand,    AddRolloutCommand,    AddInspectCommand,
        AddQuantizeCommand,    AddPullCommand,       AddListCommand,       AddRemoveCommand,
        AddTokenizeCommand,    AddDetokenizeCommand, AddDevicesCommand,    AddCalibrateCommand,
        AddPlanCommand,        AddDatastoreCommand,  AddSkipSearchCommand, AddSpeculatorCommand,
        AddCompletionsCommand, AddManCommand}) {
    add(app, chosen);
  }
}

void AddConfigTo(CLI::App* app, std::string* path) {
  for (CLI::App* command : VisibleCommands(app)) {
    if (HasSettings(command)) AddConfigOption(command, path);
    AddConfigTo(command, path);
  }
}

// Not the speculator, which is started by the engine with all that it needs, and not commands
// without options, which a mistake in the file must not stop: the manual page is one of them.
bool TakesSettings(const CLI::App& command) {
  return command.get_option_no_throw("--config") != nullptr;
}

Result<int> RunParsed(CLI::App* app, std::vector<std::string> arguments,
                      const std::string& config_path, const CommandBody& chosen) {
  FT_ASSIGN_OR_RETURN(const NamedCommand named, FindCommand(app, arguments));
  CLI::App* command = named.app;
  FT_RETURN_IF_ERROR(CheckOptionNames(command, std::span(arguments).subspan(named.words)));
  const std::vector<CLI::Option*> required = RelaxRequired(command);
  std::ranges::reverse(arguments);  // As CLI11 wants them.
  try {
    app->parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app->exit(error);  // Help, or the version.
    return InvalidInput(ExplainParseError(error, command));
  }
  std::vector<SettingsLevel> settings;
  if (TakesSettings(*command)) {
    FT_ASSIGN_OR_RETURN(settings, ReadSettings(config_path, app, command));
    for (const std::string& warning : UnknownVariables(app, environ)) PrintWarning(warning);
  }
  FT_RETURN_IF_ERROR(ApplySettings(settings));
  FT_RETURN_IF_ERROR(CheckRequired(required));
  Result<int> result = chosen();
  if (result.ok() || result.error().code != ErrorCode::kInvalidInput) return result;
  return InvalidInput(WithSources(result.error().message, settings));
}

}  // namespace

int RunProgram(std::vector<std::string> arguments) {
  CLI::App app{"Exact speculative decoding of language models, with the same tokens in every mode",
               "foretoken"};
  app.formatter(std::make_shared<HelpFormatter>());
  app.option_defaults()->group("Program");
  app.set_version_flag("--version", "foretoken " FORETOKEN_VERSION, "Print the version");
  app.set_help_flag("-h,--help", "Show the everyday options");
  app.set_help_all_flag("--help-all", "Show all options");
  app.require_subcommand(1);
  CommandBody chosen;
  std::string config_path;
  AddCommands(&app, &chosen);
  AddConfigTo(&app, &config_path);
  app.footer(kFooter);  // Last: a command that is added afterwards would have it too.
  const Result<int> result = RunParsed(&app, std::move(arguments), config_path, chosen);
  if (result.ok()) return *result;
  PrintError(result.error().message);
  return result.error().code == ErrorCode::kInvalidInput ? kBadInput : kCheckFailed;
}

}  // namespace foretoken
