#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace foretoken {

/// A value for an option from elsewhere than the command line.
struct Setting {
  CLI::Option* option = nullptr;
  std::string name;  ///< The option's, without dashes, as it was spelt there.
  std::vector<std::string> values;
  std::string source;  ///< For messages: "FORETOKEN_TEMP", "config.toml:3".
};

/// Settings that were made in one place. Options given elsewhere take their place one by one.
using SettingsLevel = std::vector<Setting>;

/// Whether the command has an option that may be set elsewhere than on the command line.
bool HasSettings(CLI::App* command);

/// Adds `--config` to the command.
void AddConfigOption(CLI::App* command, std::string* path);

/// What variables say to the command: FORETOKEN_MAX_BODY is --max-body. `variables` are of the form
/// NAME=VALUE, as `environ` has them; empty values are none.
SettingsLevel ReadVariables(CLI::App* command, const char* const* variables);

/// Warnings of FORETOKEN_* variables that are no option of any command below `root`.
std::vector<std::string> UnknownVariables(CLI::App* root, const char* const* variables);

/// What a configuration file says to the command, the strongest level first: that of the section
/// with its name, and that of the keys before any section, which are for every command that has
/// such an option. A key or section that no command has is an error. `where` names the file.
Result<std::vector<SettingsLevel>> ParseConfig(const std::string& text, std::string_view where,
                                               CLI::App* root, CLI::App* command);

/// The file that --config or FORETOKEN_CONFIG names, or else foretoken/config.toml of the user's
/// folder for configuration, where it is there. Empty: none.
std::string ConfigPath(const std::string& given);

/// All levels for the command, the strongest first.
Result<std::vector<SettingsLevel>> ReadSettings(const std::string& config_path, CLI::App* root,
                                                CLI::App* command);

/// Makes the settings the defaults of options that the parsed command line does not give, and whose
/// companions (CLI11's needs and excludes) it allows. They do not count as given. An error names
/// the source.
Status ApplySettings(const std::vector<SettingsLevel>& levels);

/// Required options may come from settings as well, so that CLI11 must not ask for them. This takes
/// the requirement away and returns who had it.
std::vector<CLI::Option*> RelaxRequired(CLI::App* command);
Status CheckRequired(const std::vector<CLI::Option*>& required);

/// `message`, and where the options that it speaks of were set, other than on the command line.
std::string WithSources(std::string message, const std::vector<SettingsLevel>& levels);

}  // namespace foretoken
