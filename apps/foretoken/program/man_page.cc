#include "apps/foretoken/program/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace foretoken {
namespace {

// Text that man(7) takes as it is.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  // A dot or quote that begins a line would be a request.
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

std::string Upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string Entry(const std::string& heading, const std::string& text) {
  return fmt::format(".TP\n.B {}\n{}\n", Escaped(heading), Escaped(text));
}

// Its lines are paragraphs.
std::string Footer(std::string_view footer) {
  std::string text;
  while (!footer.empty()) {
    const std::string_view line = footer.substr(0, footer.find('\n'));
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    text += fmt::format(".PP\n{}\n", Escaped(line.substr(begin)));
    footer.remove_prefix(std::min(line.size() + 1, footer.size()));
  }
  return text;
}

std::string CommandSection(const CommandFacts& command) {
  std::string text = fmt::format(".SH {}\n.B {}\n[\\fIoptions\\fR]", Upper(Escaped(command.path)),
                                 Escaped(command.path));
  for (const OptionFacts& argument : command.arguments) {
    text += fmt::format(" [\\fI{}\\fR]", Escaped(argument.value));
  }
  text += fmt::format("\n.PP\n{}\n", Escaped(command.text + "."));
  for (const OptionFacts& argument : command.arguments)
    text += Entry(argument.value, argument.text);
  std::string group;
  for (const OptionFacts& option : command.options) {
    if (option.group != group) text += fmt::format(".SS {}\n", Escaped(option.group));
    group = option.group;
    text += Entry(option.Heading(), option.text);
  }
  return text + Footer(command.footer);
}

}  // namespace

std::string ManPage(const CommandFacts& root, const std::string& version) {
  std::string text = fmt::format(
      ".TH FORETOKEN 1 \"\" \"foretoken {}\" \"User Commands\"\n"
      ".SH NAME\nforetoken \\- {}\n"
      ".SH SYNOPSIS\n.B foretoken\n\\fIcommand\\fR [\\fIoptions\\fR]\n"
      ".SH COMMANDS\n",
      Escaped(version), Escaped(root.text));
  for (const CommandFacts& command : root.commands) text += Entry(command.name, command.text);
  text += Footer(root.footer);
  text +=
      ".SH FILES\n.TP\n.I $XDG_CONFIG_HOME/foretoken/config.toml\n"
      "Options for every command, and for one command below its name in brackets; \\-\\-config "
      "names another file.\n"
      ".SH ENVIRONMENT\n.TP\n.I FORETOKEN_OPTION\n"
      "The value of an option: FORETOKEN_MAX_TOKENS for \\-\\-max\\-tokens. It counts more than "
      "the file and less than the command line.\n"
      ".TP\n.I FORETOKEN_MODELS\nThe folder that holds the bundled models.\n";
  for (const CommandFacts* command : AllCommands(root)) {
    if (command != &root) text += CommandSection(*command);
  }
  return text;
}

}  // namespace foretoken
