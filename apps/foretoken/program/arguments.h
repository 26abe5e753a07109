#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace foretoken {

/// The arguments behind the program's name, with the multi-letter short options that users of other
/// engines know ("-md", "-td", "-np") as long ones.
std::vector<std::string> ReadArguments(int argc, const char* const* argv);

/// The command that the arguments name: "run", or "datastore build". `root` itself where they begin
/// with an option or there are none.
struct NamedCommand {
  CLI::App* app = nullptr;
  std::size_t words = 0;  ///< How many arguments name it.
};
Result<NamedCommand> FindCommand(CLI::App* root, std::span<const std::string> arguments);

/// "foretoken datastore build".
std::string CommandPath(const CLI::App& command);

/// The commands that help lists.
std::vector<CLI::App*> VisibleCommands(CLI::App* app);

/// Long names of the options of a command, "help" among them.
std::vector<std::string> OptionNames(CLI::App* command);

/// Refuses options that the command does not have: `arguments` are those behind its name. A single
/// dash before several letters is one name, as `-hf` is, which CLI11 would read as `-h -f`.
Status CheckOptionNames(CLI::App* command, std::span<const std::string> arguments);

/// What CLI11 found wrong with the arguments of `command`, as one sentence.
std::string ExplainParseError(const CLI::ParseError& error, CLI::App* command);

}  // namespace foretoken
