#include "cli/common/help_formatter.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace foretoken {
namespace {

constexpr std::size_t kNameColumn = 30;

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

// CLI11 separates groups by two empty lines.
std::string HelpFormatter::make_help(const CLI::App* command, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string help = Formatter::make_help(command, std::move(name), mode);
  for (std::size_t at = help.find("\n\n\n"); at != std::string::npos; at = help.find("\n\n\n")) {
    help.erase(at, 1);
  }
  return help;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = make_option_name(option, is_positional);
  // What CLI11 marks the negation of a flag with.
  constexpr std::string_view kNegated = "{false}";
  if (name.ends_with(kNegated)) name.resize(name.size() - kNegated.size());
  return Entry(name + make_option_opts(option), make_option_desc(option));
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_items_expected_max() == 0) return {};
  return " " + option->get_type_name();
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return Entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_footer(const CLI::App* command) const {
  // One paragraph a line.
  const std::string paragraphs = command->get_footer();
  std::string_view rest = paragraphs;
  std::string footer;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const std::size_t indent = line.starts_with("  ") ? 4 : 0;
    footer += (indent > 0 ? "  " : "") + WrapText(line, width_ - indent, indent) + "\n";
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return footer.empty() ? footer : "\n" + footer;
}

}  // namespace foretoken
