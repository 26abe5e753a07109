#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace foretoken {

/// An option as help, the man page and completions of shells tell of it.
struct OptionFacts {
  std::vector<std::string> short_names;  ///< "-n"
  std::vector<std::string> long_names;   ///< "--max-tokens", and "--no-x" of a flag --x.
  std::string value;                     ///< "FILE", "N"; empty: a flag.
  std::string text;
  std::string group;                 ///< Its heading in the help.
  std::vector<std::string> choices;  ///< All its values, where they can be listed.

  /// "-n, --max-tokens N".
  std::string Heading() const;
  /// All names.
  std::vector<std::string> Names() const;
};

/// A command and what is below it, read from CLI11's tree, so that nothing told of it can differ
/// from what is parsed.
struct CommandFacts {
  std::string path;  ///< "foretoken datastore build"
  std::string name;  ///< "build"
  std::string text;
  std::string footer;
  std::vector<OptionFacts> arguments;  ///< Without a dash; `value` is their name.
  std::vector<OptionFacts> options;
  std::vector<CommandFacts> commands;
};

CommandFacts DescribeCommands(CLI::App* app);

/// Every command of the tree, itself first.
std::vector<const CommandFacts*> AllCommands(const CommandFacts& root);

/// The first clause of an option's text: what fits beside its name in a list.
std::string ShortText(std::string_view text);

}  // namespace foretoken
