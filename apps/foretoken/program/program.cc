#include "apps/foretoken/program/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/program/arguments.h"
#include "apps/foretoken/program/help_formatter.h"
#include "apps/foretoken/program/settings.h"
#include "apps/foretoken/program/studies.h"
#include "base/exhaustion.h"

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
    "Without --target and --draft the bundled models are used.\n"
    "Exit codes: 0 good, 1 a check or a write failed, 2 bad usage or input.";

// The commands, in the order of the help.
void AddAllCommands(CLI::App* app, AddCommands add_studies, CommandBody* chosen) {
  for (const auto add :
       {AddRunCommand, AddChatCommand, AddServeCommand, AddDemoCommand, AddInspectCommand,
        AddQuantizeCommand, AddPullCommand, AddListCommand, AddRemoveCommand, AddTokenizeCommand,
        AddDetokenizeCommand, AddDevicesCommand, AddDatastoreCommand, AddSpeculatorCommand}) {
    add(app, chosen);
  }
  if (add_studies == nullptr) {
    AddStudiesElsewhere(app);
  } else {
    add_studies(app, chosen);
  }
  AddCompletionsCommand(app, chosen);
  AddManCommand(app, chosen);
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

// What only foretoken-lab can do: studies, and to tell of all commands.
bool IsForLab(const CLI::App& command) {
  return IsElsewhere(command) || command.get_name() == "completions" || command.get_name() == "man";
}

// Reads the settings of a command and warns of variables that no command knows. Where this program
// does not know one, `whole` says whether it knows all commands; if not, foretoken-lab goes on with
// the `arguments`, where it is there.
Result<std::vector<SettingsLevel>> SettingsFor(CLI::App* app, CLI::App* command,
                                               const std::string& config_path, bool whole,
                                               const std::vector<std::string>& arguments) {
  Result<std::vector<SettingsLevel>> settings = ReadSettings(config_path, app, command);
  const std::vector<std::string> warnings = UnknownVariables(app, environ);
  if (!whole && (!settings.ok() || !warnings.empty())) (void)ContinueInLab(arguments);
  if (settings.ok()) {
    for (const std::string& warning : warnings) PrintWarning(warning);
  }
  return settings;
}

Result<int> RunParsed(CLI::App* app, std::vector<std::string> arguments, bool whole,
                      const std::string& config_path, const CommandBody& chosen) {
  FT_ASSIGN_OR_RETURN(const NamedCommand named, FindCommand(app, arguments));
  CLI::App* command = named.app;
  if (!whole && IsForLab(*command)) {
    Status status = ContinueInLab(arguments);
    if (IsElsewhere(*command)) return status.error();
  }
  const std::vector<std::string> given = arguments;
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
    FT_ASSIGN_OR_RETURN(settings, SettingsFor(app, command, config_path, whole, given));
  }
  FT_RETURN_IF_ERROR(ApplySettings(settings));
  FT_RETURN_IF_ERROR(CheckRequired(required));
  Result<int> result = chosen();
  if (result.ok() || result.error().code != ErrorCode::kInvalidInput) return result;
  return InvalidInput(WithSources(result.error().message, settings));
}

// A file that is opened later must not get the number of a standard stream that the caller has
// closed: what is printed would go into it. Writing to standard output then fails, and is said to.
void OccupyClosedStreams() {
  for (const auto& [stream, way] :
       {std::pair(STDIN_FILENO, O_RDONLY), std::pair(STDOUT_FILENO, O_RDONLY),
        std::pair(STDERR_FILENO, O_WRONLY)}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", way);  // Takes the lowest free number.
  }
}

int RunProgram(std::vector<std::string> arguments, AddCommands add_studies) {
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
  AddAllCommands(&app, add_studies, &chosen);
  AddConfigTo(&app, &config_path);
  app.footer(kFooter);  // Last: a command that is added afterwards would have it too.
  const Result<int> result =
      RunParsed(&app, std::move(arguments), add_studies != nullptr, config_path, chosen);
  if (result.ok()) return *result;
  PrintError(result.error().message);
  return result.error().code == ErrorCode::kInvalidInput ? kBadInput : kCheckFailed;
}

}  // namespace

int Main(int argc, char** argv, AddCommands add_studies) {
  EndOnExhaustion();
  OccupyClosedStreams();
  int code = kCheckFailed;
  try {
    code = RunProgram(ReadArguments(argc, argv), add_studies);
  } catch (const std::exception& error) {  // Out of memory, or a library's surprise.
    // What could not be printed is said below.
    if (std::ferror(stdout) == 0) PrintError(ExhaustionSentence(error));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    PrintError("writing to standard output failed: it is full or closed");
    return kCheckFailed;
  }
  return code;
}

}  // namespace foretoken
