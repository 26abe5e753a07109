#include "apps/foretoken/program/settings.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/arguments.h"
#include "apps/foretoken/program/near_miss.h"
#include "base/files/read_text.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "FORETOKEN_";
// Options that only a command line can give.
constexpr std::string_view kCommandLineOnly[] = {"help", "help-all", "version", "config"};
// Variables that are no option: of the bundled models, and where the file is.
constexpr std::string_view kOtherVariables[] = {"FORETOKEN_MODELS", "FORETOKEN_CONFIG"};

std::string VariableName(std::string_view option) {
  std::string name(kPrefix);
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::vector<std::string> SettableNames(CLI::App* command) {
  std::vector<std::string> names = OptionNames(command);
  std::erase_if(names, [](const std::string& name) {
    return std::ranges::find(kCommandLineOnly, name) != std::end(kCommandLineOnly);
  });
  return names;
}

// Collects the settable names of the command and all below it.
void CollectNames(CLI::App* command, std::vector<std::string>* names) {
  const std::vector<std::string> own = SettableNames(command);
  names->insert(names->end(), own.begin(), own.end());
  for (CLI::App* below : VisibleCommands(command)) CollectNames(below, names);
}

std::vector<std::string> NamesBelow(CLI::App* root) {
  std::vector<std::string> names;
  CollectNames(root, &names);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// The option of that name, or null.
CLI::Option* Find(CLI::App* command, const std::string& name) {
  const std::vector<std::string> names = SettableNames(command);
  const bool has = std::ranges::find(names, name) != names.end();
  return has ? command->get_option_no_throw("--" + name) : nullptr;
}

std::string Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\"'");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\"'") - begin + 1));
}

// The line of a key in a section ("" before any); CLI11's reader does not tell. 1 where it is not
// found.
int LineOf(const std::string& text, std::string_view section, std::string_view key) {
  std::istringstream lines(text);
  std::string current;
  int number = 1;
  for (std::string line; std::getline(lines, line); ++number) {
    const std::string trimmed = Trimmed(line);
    if (trimmed.starts_with('[') && trimmed.ends_with(']')) {
      current = Trimmed(trimmed.substr(1, trimmed.size() - 2));
      if (key.empty() && current == section) return number;
      continue;
    }
    const std::string name = Trimmed(trimmed.substr(0, trimmed.find_first_of("=#")));
    if (!key.empty() && current == section && name == key) return number;
  }
  return 1;
}

// "datastore.build" is the command `foretoken datastore build`; null where there is none.
CLI::App* CommandOf(CLI::App* root, const std::vector<std::string>& path) {
  CLI::App* command = root;
  for (const std::string& name : path) {
    const std::vector<CLI::App*> commands = VisibleCommands(command);
    const auto found =
        std::ranges::find(commands, name, [](const CLI::App* below) { return below->get_name(); });
    if (found == commands.end()) return nullptr;
    command = *found;
  }
  return command;
}

std::string Joined(const std::vector<std::string>& path) {
  std::string joined;
  for (const std::string& name : path) joined += (joined.empty() ? "" : ".") + name;
  return joined;
}

Status RefuseKey(CLI::App* root, const CLI::ConfigItem& item, const std::string& place) {
  if (item.parents.empty()) {
    return Invalid("{}: no command has an option '{}'{}", place, item.name,
                   Suggestion(item.name, NamesBelow(root)));
  }
  CLI::App* command = CommandOf(root, item.parents);
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const CLI::App* below : VisibleCommands(root)) names.push_back(below->get_name());
    return Invalid("{}: the section [{}] is no command{}", place, Joined(item.parents),
                   Suggestion(Joined(item.parents), names));
  }
  return Invalid("{}: {} has no option '{}'{}", place, CommandPath(*command), item.name,
                 Suggestion(item.name, SettableNames(command)));
}

bool IsGiven(const CLI::Option* option) { return option->count() > 0; }

// The value of a flag, as CLI11 wants it.
std::string FlagValue(const Setting& setting) {
  const bool on = CLI::detail::to_flag_value(setting.values.front()) > 0;
  return setting.option->get_flag_value(setting.name, on ? "true" : "false");
}

// Gives the value to the option as if it were its default.
Status Apply(const Setting& setting) {
  CLI::Option* option = setting.option;
  const auto refused = [&](std::string_view why) {
    return Invalid("{}: --{}: {}", setting.source, setting.name, why);
  };
  const bool is_empty = setting.values.size() == 1 && setting.values.front().empty();
  if (setting.values.empty() || is_empty) return refused("has no value");
  if (setting.values.size() > 1 && option->get_expected_max() < 2) {
    return refused("takes one value, once; a value with spaces or commas needs quotes");
  }
  try {
    const bool is_flag = option->get_items_expected_max() == 0;
    for (const std::string& value : setting.values) {
      option->add_result(is_flag ? FlagValue(setting) : value);
    }
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    std::string why = error.what();
    const std::string prefix = option->get_name() + ": ";
    if (why.starts_with(prefix)) why.erase(0, prefix.size());
    return refused(why);
  } catch (const std::invalid_argument&) {
    return refused(fmt::format("'{}' is neither true nor false", setting.values.front()));
  }
  option->clear();
  MarkSet(option, setting.source);
  return {};
}

// Whether the options that this one needs have a value.
bool HasCompanions(const CLI::Option* option) {
  return std::ranges::all_of(option->get_needs(),
                             [](CLI::Option* needed) { return IsGiven(needed) || IsSet(*needed); });
}

Status ApplyLevel(const SettingsLevel& level, bool with_needs) {
  std::vector<const Setting*> applied;
  for (const Setting& setting : level) {
    CLI::Option* option = setting.option;
    if (option->get_needs().empty() == with_needs || !HasCompanions(option)) continue;
    const std::set<CLI::Option*> rivals = option->get_excludes();
    for (const Setting* other : applied) {
      if (!rivals.contains(other->option)) continue;
      return Invalid("{} and {} exclude each other: set only one", other->source, setting.source);
    }
    const bool beaten = std::ranges::any_of(
        rivals, [](const CLI::Option* other) { return IsGiven(other) || IsSet(*other); });
    if (IsGiven(option) || IsSet(*option) || beaten) continue;
    FT_RETURN_IF_ERROR(Apply(setting));
    applied.push_back(&setting);
  }
  return {};
}

}  // namespace

bool HasSettings(CLI::App* command) { return !SettableNames(command).empty(); }

void AddConfigOption(CLI::App* command, std::string* path) {
  const OptionGroup add(command, "Program");
  add("--config", path, "FILE",
      "Take options from this file: lines like temp = 0.7, those below [run] for that command "
      "only (default: ~/.config/foretoken/config.toml). FORETOKEN_TEMP=0.7 counts more, what is "
      "given here most");
}

SettingsLevel ReadVariables(CLI::App* command, const char* const* variables) {
  SettingsLevel level;
  for (const std::string& name : SettableNames(command)) {
    const std::string variable = VariableName(name);
    for (const char* const* at = variables; *at != nullptr; ++at) {
      const std::string_view entry = *at;
      if (!entry.starts_with(variable + "=")) continue;
      const std::string_view value = entry.substr(variable.size() + 1);
      if (value.empty()) continue;
      level.push_back({Find(command, name), name, {std::string(value)}, variable});
    }
  }
  return level;
}

std::vector<std::string> UnknownVariables(CLI::App* root, const char* const* variables) {
  std::vector<std::string> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const std::string& name : NamesBelow(root)) known.push_back(VariableName(name));
  std::vector<std::string> warnings;
  for (const char* const* at = variables; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::string name(entry.substr(0, entry.find('=')));
    if (!name.starts_with(kPrefix) || std::ranges::find(known, name) != known.end()) continue;
    warnings.push_back(fmt::format("the variable {} names no option of any command{}", name,
                                   Suggestion(name, known)));
  }
  return warnings;
}

Result<std::vector<SettingsLevel>> ParseConfig(const std::string& text, std::string_view where,
                                               CLI::App* root, CLI::App* command) {
  std::vector<std::string> own_path;
  for (CLI::App* at = command; at->get_parent() != nullptr; at = at->get_parent()) {
    own_path.insert(own_path.begin(), at->get_name());
  }
  std::vector<CLI::ConfigItem> items;
  try {
    std::istringstream stream(text);
    items = CLI::ConfigTOML().from_config(stream);
  } catch (const std::exception& error) {
    return Invalid("{}: {}", where, error.what());
  }
  std::vector<SettingsLevel> levels(2);
  const std::vector<std::string> names = NamesBelow(root);
  for (const CLI::ConfigItem& item : items) {
    const bool of_section = !item.parents.empty();
    // What CLI11 marks the beginning and the end of a section with.
    const bool mark = item.name == "++" || item.name == "--";
    const std::string place =
        fmt::format("{}:{}", where, LineOf(text, Joined(item.parents), mark ? "" : item.name));
    CLI::App* at = CommandOf(root, item.parents);
    const bool known = at == nullptr ? false
                       : mark        ? true
                       : of_section  ? Find(at, item.name) != nullptr
                                     : std::ranges::find(names, item.name) != names.end();
    if (!known) return RefuseKey(root, item, place).error();
    CLI::Option* option = mark ? nullptr : Find(command, item.name);
    if (option == nullptr || (of_section && item.parents != own_path)) continue;
    levels[of_section ? 0 : 1].push_back({option, item.name, item.inputs, place});
  }
  return levels;
}

std::string ConfigPath(const std::string& given) {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (!given.empty()) return given;
  if (const std::string named = variable("FORETOKEN_CONFIG"); !named.empty()) return named;
  fs::path folder = variable("XDG_CONFIG_HOME");
  if (!folder.is_absolute()) folder = fs::path(variable("HOME")) / ".config";
  const fs::path usual = folder / "foretoken" / "config.toml";
  std::error_code ignored;
  return folder.is_absolute() && fs::exists(usual, ignored) ? usual.string() : std::string();
}

Result<std::vector<SettingsLevel>> ReadSettings(const std::string& config_path, CLI::App* root,
                                                CLI::App* command) {
  std::vector<SettingsLevel> levels = {ReadVariables(command, environ)};
  const std::string path = ConfigPath(config_path);
  if (path.empty()) return levels;
  const Result<std::string> text = ReadText(path);
  if (!text.ok())
    return Invalid("cannot read the configuration '{}': {}", path, text.error().message);
  FT_ASSIGN_OR_RETURN(std::vector<SettingsLevel> of_file, ParseConfig(*text, path, root, command));
  for (SettingsLevel& level : of_file) levels.push_back(std::move(level));
  return levels;
}

Status ApplySettings(const std::vector<SettingsLevel>& levels) {
  // What others need comes first, from whichever level.
  for (const bool with_needs : {false, true}) {
    for (const SettingsLevel& level : levels) FT_RETURN_IF_ERROR(ApplyLevel(level, with_needs));
  }
  return {};
}

std::vector<CLI::Option*> RelaxRequired(CLI::App* command) {
  std::vector<CLI::Option*> required;
  for (CLI::Option* option : command->get_options()) {
    if (!option->get_required() || option->get_lnames().empty()) continue;
    option->required(false);
    required.push_back(option);
  }
  return required;
}

Status CheckRequired(const std::vector<CLI::Option*>& required) {
  for (const CLI::Option* option : required) {
    if (IsGiven(option) || IsSet(*option)) continue;
    return Invalid("{} {} is missing; --help tells more", option->get_name(),
                   option->get_type_name());
  }
  return {};
}

std::string WithSources(std::string message, const std::vector<SettingsLevel>& levels) {
  for (const SettingsLevel& level : levels) {
    for (const Setting& setting : level) {
      if (SourceOf(*setting.option) != setting.source) continue;
      if (message.find(setting.source) != std::string::npos) continue;
      for (const std::string& name : setting.option->get_lnames()) {
        const std::size_t at = message.find("--" + name);
        if (at == std::string::npos) continue;
        const std::size_t end = at + 2 + name.size();
        const bool longer =
            end < message.size() &&
            (std::isalnum(static_cast<unsigned char>(message[end])) != 0 || message[end] == '-');
        if (longer) continue;
        message += fmt::format(" ({} sets it)", setting.source);
        break;
      }
    }
  }
  return message;
}

}  // namespace foretoken
