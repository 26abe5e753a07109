#include "apps/foretoken/program/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace foretoken {
namespace {

// In single quotes, for any of the shells.
std::string QuotedForShell(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::vector<std::string> NamesOfCommands(const std::vector<CommandFacts>& commands) {
  std::vector<std::string> names;
  for (const CommandFacts& command : commands) names.push_back(command.name);
  return names;
}

// The path without the program: "datastore build", "" for the root.
std::string Words(const CommandFacts& command) {
  const std::size_t space = command.path.find(' ');
  return space == std::string::npos ? "" : command.path.substr(space + 1);
}

bool IsFile(const OptionFacts& option) {
  return option.value.find("FILE") != std::string::npos || option.value == "MODEL";
}
bool IsFolder(const OptionFacts& option) { return option.value == "DIR"; }

// Whether its arguments are names of files or folders.
bool TakesFiles(const CommandFacts& command) {
  return std::ranges::any_of(command.arguments, [](const OptionFacts& argument) {
    return argument.value == "path" || argument.value == "files";
  });
}

// All that its arguments can be, where that can be listed: the commands below it count.
std::vector<std::string> ArgumentChoices(const CommandFacts& command) {
  std::vector<std::string> choices = NamesOfCommands(command.commands);
  for (const OptionFacts& argument : command.arguments) {
    choices.insert(choices.end(), argument.choices.begin(), argument.choices.end());
  }
  return choices;
}

// What the command takes, as a branch of the bash function.
std::string BashBranch(const CommandFacts& command) {
  std::string values;
  std::vector<std::string> names;
  for (const OptionFacts& option : command.options) {
    const std::vector<std::string> own = option.Names();
    names.insert(names.end(), own.begin(), own.end());
    if (option.value.empty()) continue;
    const std::string reply =
        !option.choices.empty()
            ? fmt::format("COMPREPLY=($(compgen -W {} -- \"$word\"))",
                          QuotedForShell(fmt::format("{}", fmt::join(option.choices, " "))))
        : IsFolder(option) ? "_foretoken_paths -d \"$word\""
        : IsFile(option)   ? "_foretoken_paths -f \"$word\""
                           : "COMPREPLY=()";
    values += fmt::format("        {}) {}; return ;;\n", fmt::join(own, "|"), reply);
  }
  const std::vector<std::string> choices = ArgumentChoices(command);
  return fmt::format(
      "    {})\n"
      "      case $previous in\n{}      esac\n"
      "      options={}\n      words={}\n      files={} ;;\n",
      QuotedForShell(Words(command)), values,
      QuotedForShell(fmt::format("{}", fmt::join(names, " "))),
      choices.empty() ? "$options" : QuotedForShell(fmt::format("{}", fmt::join(choices, " "))),
      TakesFiles(command) ? 1 : 0);
}

// An option for zsh's _arguments.
std::string ZshOption(const OptionFacts& option) {
  std::string text;
  for (const char c : ShortText(option.text)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') text += '\\';
    text += c;
  }
  std::string lines;
  for (const std::string& name : option.Names()) {
    std::string spec = fmt::format("*{}[{}]", name, text);
    if (!option.value.empty()) {
      spec += ":value:";
      if (!option.choices.empty()) {
        spec += fmt::format("({})", fmt::join(option.choices, " "));
      } else if (IsFolder(option)) {
        spec += "_files -/";
      } else if (IsFile(option)) {
        spec += "_files";
      }
    }
    lines += fmt::format(" \\\n        {}", QuotedForShell(spec));
  }
  return lines;
}

}  // namespace

std::string BashCompletions(const CommandFacts& root) {
  std::string branches;
  std::vector<std::string> paths;
  for (const CommandFacts* command : AllCommands(root)) {
    branches += BashBranch(*command);
    paths.push_back(QuotedForShell(Words(*command)));
  }
  return fmt::format(
      "# bash completion for foretoken; written by `foretoken completions bash`.\n"
      "_foretoken_paths() {{\n"
      "  mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n"
      "  compopt -o filenames 2>/dev/null\n"
      "}}\n"
      "_foretoken() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local command='' options='' words='' files=0 i path\n"
      "  # Bash takes --mode=ar for three words.\n"
      "  if [[ $word == = ]]; then word=''\n"
      "  elif [[ $previous == = ]]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n"
      "  local -a paths=({})\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    for path in \"${{paths[@]}}\"; do\n"
      "      if [[ $path == \"${{command:+$command }}${{COMP_WORDS[i]}}\" ]]; then command=$path; "
      "break; fi\n"
      "    done\n"
      "  done\n"
      "  case $command in\n{}  esac\n"
      "  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  elif ((files)); then _foretoken_paths -f \"$word\"\n"
      "  else COMPREPLY=($(compgen -W \"$words\" -- \"$word\")); fi\n"
      "}}\n"
      "complete -F _foretoken foretoken\n",
      fmt::join(paths, " "), branches);
}

std::string ZshCompletions(const CommandFacts& root) {
  std::string branches;
  std::vector<std::string> paths;
  for (const CommandFacts* command : AllCommands(root)) {
    paths.push_back(QuotedForShell(Words(*command)));
    branches += fmt::format("    {})\n", QuotedForShell(Words(*command)));
    if (command->commands.empty()) {
      branches += "      _arguments -S";
      for (const OptionFacts& option : command->options) branches += ZshOption(option);
      const std::vector<std::string> choices = ArgumentChoices(*command);
      branches +=
          fmt::format(" \\\n        '*:argument:{}' ;;\n",
                      choices.empty() ? "_files" : fmt::format("({})", fmt::join(choices, " ")));
      continue;
    }
    branches += "      local -a commands=(";
    for (const CommandFacts& below : command->commands) {
      branches +=
          fmt::format("\n        {}", QuotedForShell(below.name + ":" + ShortText(below.text)));
    }
    branches += ")\n      _describe command commands ;;\n";
  }
  return fmt::format(
      "#compdef foretoken\n"
      "# zsh completion; written by `foretoken completions zsh`.\n"
      "_foretoken() {{\n"
      "  local command='' path word\n"
      "  local -a paths=({})\n"
      "  for word in \"${{words[@]:1:$((CURRENT - 2))}}\"; do\n"
      "    for path in \"${{paths[@]}}\"; do\n"
      "      if [[ $path == \"${{command:+$command }}$word\" ]]; then command=$path; break; fi\n"
      "    done\n"
      "  done\n"
      "  case $command in\n{}  esac\n"
      "}}\n"
      "if [[ ${{funcstack[1]}} == _foretoken ]]; then _foretoken \"$@\"; else compdef _foretoken "
      "foretoken; fi\n",
      fmt::join(paths, " "), branches);
}

std::string FishCompletions(const CommandFacts& root) {
  std::string lines =
      "# fish completion; written by `foretoken completions fish`.\n"
      "complete -c foretoken -f\n";
  for (const CommandFacts* command : AllCommands(root)) {
    std::string condition;  // All words of the path seen, none of the commands below.
    std::string words = Words(*command);
    std::ranges::replace(words, ' ', '\n');
    for (std::size_t begin = 0; begin < words.size();) {
      const std::size_t end = std::min(words.find('\n', begin), words.size());
      condition += fmt::format("{}__fish_seen_subcommand_from {}",
                               condition.empty() ? "" : "; and ", words.substr(begin, end - begin));
      begin = end + 1;
    }
    const std::string below = fmt::format("{}", fmt::join(NamesOfCommands(command->commands), " "));
    if (!below.empty()) {
      condition += fmt::format("{}not __fish_seen_subcommand_from {}",
                               condition.empty() ? "" : "; and ", below);
    }
    const std::string begin = fmt::format("complete -c foretoken -n {}", QuotedForShell(condition));
    for (const CommandFacts& sub : command->commands) {
      lines +=
          fmt::format("{} -a {} -d {}\n", begin, sub.name, QuotedForShell(ShortText(sub.text)));
    }
    for (const OptionFacts& argument : command->arguments) {
      if (argument.choices.empty()) continue;
      lines += fmt::format("{} -a {}\n", begin,
                           QuotedForShell(fmt::format("{}", fmt::join(argument.choices, " "))));
    }
    if (TakesFiles(*command)) lines += begin + " -F\n";
    for (const OptionFacts& option : command->options) {
      lines += begin;
      for (const std::string& name : option.short_names) lines += " -s " + name.substr(1);
      for (const std::string& name : option.long_names) lines += " -l " + name.substr(2);
      if (!option.choices.empty()) {
        lines += fmt::format(" -x -a {}",
                             QuotedForShell(fmt::format("{}", fmt::join(option.choices, " "))));
      } else if (IsFolder(option)) {
        lines += " -x -a '(__fish_complete_directories)'";
      } else if (IsFile(option)) {
        lines += " -r -F";
      } else if (!option.value.empty()) {
        lines += " -x";
      }
      lines += fmt::format(" -d {}\n", QuotedForShell(ShortText(option.text)));
    }
  }
  return lines;
}

}  // namespace foretoken
