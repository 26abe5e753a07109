#include "apps/foretoken/program/help_formatter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace foretoken {
namespace {

constexpr std::size_t kNameColumn = 30;
// A command with no more options than that shows them all at once.
constexpr std::size_t kFew = 14;

constexpr std::string_view kEveryday[] = {
    "prompt",     "file",    "chat",        "system",        "server",    "against",  "target",
    "hf-repo",    "models",  "draft",       "hf-repo-draft", "mode",      "modes",    "prompts",
    "limit",      "batch",   "batches",     "host",          "port",      "alias",    "api-key",
    "max-tokens", "context", "temp",        "temps",         "top-k",     "top-p",    "seed",
    "stop",       "grammar", "json-schema", "threads",       "datastore", "roofline", "simulate",
    "preset",     "output",  "calibration", "json",          "html",      "config",   "help",
    "help-all",   "out",     "samples"};

std::vector<const CLI::Option*> NamedOptions(const CLI::App* command) {
  return command->get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

std::size_t TerminalWidth() {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::clamp<std::size_t>(size.ws_col, 60, 110) : 100;
}

}  // namespace

std::string WrapText(std::string_view text, std::size_t width, std::size_t indent) {
  std::string wrapped;
  std::size_t column = 0;
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return wrapped;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > 0 && column + 1 + word.size() > width) {
      wrapped.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > 0) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
    text.remove_prefix(word.size());
  }
}

HelpFormatter::HelpFormatter() : width_(TerminalWidth()) { column_width(kNameColumn); }

std::string HelpFormatter::Entry(const std::string& name, const std::string& description) const {
  std::string entry = "  " + name;
  if (entry.size() + 2 > kNameColumn) {
    entry += "\n" + std::string(kNameColumn, ' ');
  } else {
    entry.append(kNameColumn - entry.size(), ' ');
  }
  // Wrapped as if the column were the left margin, then moved there.
  std::string text = WrapText(description, width_ - kNameColumn, 0);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, kNameColumn, ' ');
  }
  return entry + text + "\n";
}

std::string HelpFormatter::Arguments(const CLI::App* command) const {
  std::string text;
  for (const CLI::Option* option : command->get_options()) {
    if (!option->get_positional()) continue;
    text += Entry(option->get_name(/*positional=*/true), option->get_description());
  }
  return text.empty() ? text : "\nArguments:\n" + text;
}

std::string HelpFormatter::Options(std::string_view heading,
                                   const std::vector<const CLI::Option*>& options) const {
  std::string text;
  for (const CLI::Option* option : options) {
    std::string name = make_option_name(option, /*is_positional=*/false);
    // What CLI11 marks the negation of a flag with.
    constexpr std::string_view kNegated = "{false}";
    if (name.ends_with(kNegated)) name.resize(name.size() - kNegated.size());
    if (option->get_items_expected_max() > 0) name += " " + option->get_type_name();
    text += Entry(name, option->get_description());
  }
  return text.empty() ? text : fmt::format("\n{}:\n{}", heading, text);
}

std::string HelpFormatter::Everyday(const CLI::App* command) const {
  std::vector<const CLI::Option*> shown = NamedOptions(command);
  const std::size_t all = shown.size();
  std::vector<std::string> hidden;
  if (all > kFew) {
    const auto rank = [](const CLI::Option* option) {
      return std::ranges::find_if(kEveryday,
                                  [option](std::string_view name) {
                                    return option->check_lname(std::string(name));
                                  }) -
             std::begin(kEveryday);
    };
    for (const CLI::Option* option : shown) {
      const std::string& group = option->get_group();
      const bool new_group = std::ranges::find(hidden, group) == hidden.end();
      if (rank(option) == std::ssize(kEveryday) && new_group) hidden.push_back(group);
    }
    std::erase_if(shown, [&](const auto* option) { return rank(option) == std::ssize(kEveryday); });
    std::ranges::stable_sort(shown, {}, rank);
  }
  std::string text = Options("Options", shown);
  if (shown.size() < all) {
    text += "\n" +
            WrapText(fmt::format("--help-all shows {} more ({}).", all - shown.size(),
                                 fmt::join(hidden, ", ")),
                     width_, 0) +
            "\n";
  }
  return text;
}

std::string HelpFormatter::Groups(const CLI::App* command) const {
  std::string text;
  for (const std::string& group : command->get_groups()) {
    std::vector<const CLI::Option*> options = NamedOptions(command);
    std::erase_if(options, [&](const auto* option) { return option->get_group() != group; });
    text += Options(group, options);
  }
  return text;
}

std::string HelpFormatter::Commands(const CLI::App* command) const {
  std::string text;
  for (const CLI::App* below :
       command->get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); })) {
    text += Entry(below->get_name(), below->get_description());
  }
  return text.empty() ? text : "\nCommands:\n" + text;
}

std::string HelpFormatter::Footer(const std::string& paragraphs, bool with_tables) const {
  // One paragraph a line.
  std::string_view rest = paragraphs;
  std::string footer;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const bool table = line.starts_with("  ");
    const std::size_t indent = table ? 4 : 0;
    if (!table || with_tables) {
      footer += (table ? "  " : "") + WrapText(line, width_ - indent, indent) + "\n";
    }
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return footer.empty() ? footer : "\n" + footer;
}

std::string HelpFormatter::make_help(const CLI::App* command, std::string name,
                                     CLI::AppFormatMode mode) const {
  const bool all = mode == CLI::AppFormatMode::All;
  std::string help = command->get_description() + "\n" + make_usage(command, name);
  help += Arguments(command);
  help += Commands(command);
  help += all ? Groups(command) : Everyday(command);
  help += Footer(command->get_footer(), all);
  if (!all) return help;
  for (const CLI::App* below :
       command->get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); })) {
    help += "\n" + make_help(below, name + " " + below->get_name(), mode);
  }
  return help;
}

}  // namespace foretoken
