#include "apps/foretoken/program/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>

#include "apps/foretoken/program/near_miss.h"

namespace foretoken {
namespace {

// Options of other engines that no option here stands for, and what to do without.
struct ForeignOption {
  std::string_view name;
  std::string_view advice;
};
constexpr std::string_view kFileByName = "a file is named behind its model: -hf ORG/NAME:FILE.gguf";
constexpr std::string_view kNoAddresses =
    "models are fetched from a hub by name, -hf ORG/NAME, and none by an address";
constexpr std::string_view kNoLayers =
    "models run on the cores that --target-cores and --threads choose: leave it out";
constexpr std::string_view kOneFormat =
    "keys and values are kept in one format: --kv bf16, f32 or q8_0";
constexpr ForeignOption kForeign[] = {
    {"-hff", kFileByName},
    {"--hf-file", kFileByName},
    {"-mu", kNoAddresses},
    {"--model-url", kNoAddresses},
    {"-ngl", kNoLayers},
    {"--gpu-layers", kNoLayers},
    {"--n-gpu-layers", kNoLayers},
    {"-ngld", kNoLayers},
    {"--gpu-layers-draft", kNoLayers},
    {"-ctk", kOneFormat},
    {"--cache-type-k", kOneFormat},
    {"-ctv", kOneFormat},
    {"--cache-type-v", kOneFormat},
};

// The name of an option in an argument, without what may be attached: "--temp" of "--temp=1", "-n"
// of "-n8". Letters belong to the name.
std::string_view NameIn(std::string_view argument) {
  const std::string_view name = argument.substr(0, argument.find('='));
  if (name.starts_with("--") || name.size() < 3) return name;
  const bool is_word = std::isalpha(static_cast<unsigned char>(name[2])) != 0;
  return is_word ? name : name.substr(0, 2);
}

Error NoSuchOption(CLI::App* command, std::string_view name) {
  const std::string found = fmt::format("{} has no option {}", CommandPath(*command), name);
  for (const auto& [foreign, advice] : kForeign) {
    if (foreign == name) return Invalid("{}; {}", found, advice);
  }
  std::vector<std::string> names;
  for (const std::string& known : OptionNames(command)) names.push_back("--" + known);
  if (!name.starts_with("--")) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& known : option->get_snames()) names.push_back("-" + known);
    }
  }
  // "-temp" is nearer to "--temp" than to "-t": dashes do not count.
  const std::string_view bare = name.substr(name.find_first_not_of('-'));
  std::vector<std::string> bare_names;
  for (const std::string& known : names) {
    bare_names.push_back(known.substr(known.find_first_not_of('-')));
  }
  const std::string nearest = NearMiss(bare, bare_names);
  const auto at = std::ranges::find(bare_names, nearest);
  const std::string hint = at == bare_names.end()
                               ? "; --help-all lists them"
                               : fmt::format("; did you mean {}?", names[at - bare_names.begin()]);
  return InvalidInput(found + hint);
}

bool HasName(CLI::App* command, std::string_view name) {
  return command->get_option_no_throw(std::string(name)) != nullptr;
}

}  // namespace

std::vector<std::string> ReadArguments(int argc, const char* const* argv) {
  static const std::map<std::string_view, std::string_view> kLong = {
      {"-md", "--draft"},          {"-td", "--draft-threads"}, {"-np", "--batch"},
      {"-hf", "--hf-repo"},        {"-hfr", "--hf-repo"},      {"-hfd", "--hf-repo-draft"},
      {"-hfrd", "--hf-repo-draft"}};
  std::vector<std::string> arguments;
  bool options_ended = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    options_ended = options_ended || argument == "--";
    const auto found = kLong.find(argument);
    const bool known = found != kLong.end() && !options_ended;
    arguments.emplace_back(known ? found->second : argument);
  }
  return arguments;
}

std::string CommandPath(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : CommandPath(*parent) + " " + command.get_name();
}

std::vector<CLI::App*> VisibleCommands(CLI::App* app) {
  return app->get_subcommands(
      [](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<std::string> OptionNames(CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  return names;
}

Result<NamedCommand> FindCommand(CLI::App* root, std::span<const std::string> arguments) {
  NamedCommand named{root, 0};
  for (const std::string& argument : arguments) {
    const std::vector<CLI::App*> commands =
        named.app->get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty() || argument.starts_with('-')) break;
    const auto found = std::ranges::find(
        commands, argument, [](const CLI::App* command) { return command->get_name(); });
    if (found == commands.end()) {
      std::vector<std::string> names;
      for (const CLI::App* command : VisibleCommands(named.app)) {
        names.push_back(command->get_name());
      }
      const std::string hint = Suggestion(argument, names);
      return Invalid("{} has no command '{}'{}", CommandPath(*named.app), argument,
                     hint.empty() ? "; --help lists them" : hint);
    }
    named = {*found, named.words + 1};
  }
  return named;
}

Status CheckOptionNames(CLI::App* command, std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || !argument.starts_with('-')) continue;
    const std::string_view name = NameIn(argument);
    // CLI11 looks for a single letter behind a single dash.
    const bool one_name = name.starts_with("--") || name.size() == 2;
    if (!one_name || !HasName(command, name)) return NoSuchOption(command, name);
    const CLI::Option* option = command->get_option(std::string(name));
    if (option->get_items_expected_min() == 0 || name.size() < argument.size()) continue;
    ++i;  // Its value, which may begin with a dash as in --presence-penalty -0.5.
    const bool next_is_option =
        i < arguments.size() && arguments[i].starts_with("--") && HasName(command, arguments[i]);
    if (i == arguments.size() || next_is_option) {
      return Invalid("{} needs a value: {} {}", name, name, option->get_type_name());
    }
  }
  return {};
}

std::string ExplainParseError(const CLI::ParseError& error, CLI::App* command) {
  std::string message = error.what();
  std::ranges::replace(message, '\n', ' ');
  while (message.ends_with(' ') || message.ends_with('.')) message.pop_back();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const std::vector<std::string> extras = command->remaining();
    return fmt::format("there is no place for the argument{} '{}'; text with spaces needs quotes",
                       extras.size() > 1 ? "s" : "", fmt::join(extras, "' '"));
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    if (!VisibleCommands(command).empty()) {
      return fmt::format("{} needs a command; --help lists them", CommandPath(*command));
    }
    constexpr std::string_view kRequired = " is required";
    if (message.ends_with(kRequired)) message.resize(message.size() - kRequired.size());
    return fmt::format("the argument '{}' is missing; --help tells more", message);
  }
  const auto called = [](const std::string& name) {
    return name.starts_with('-') ? name : "the argument '" + name + "'";
  };
  const std::size_t excludes = message.find(" excludes ");
  if (error.get_name() == "ExcludesError" && excludes != std::string::npos) {
    return fmt::format("give either {} or {}, not both", called(message.substr(0, excludes)),
                       called(message.substr(excludes + 10)));
  }
  // CLI11's "--temp: At Most 1 required but received 2".
  const std::size_t at_most = message.find(": At Most 1 required but received ");
  if (at_most != std::string::npos) {
    return fmt::format("{} is given more than once; give one value", message.substr(0, at_most));
  }
  return message + "; --help tells more";
}

}  // namespace foretoken
