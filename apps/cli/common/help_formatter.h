#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace foretoken {

/// Breaks `text` between words so that no line is longer than `width` where its words allow; lines
/// after the first begin with `indent` spaces, which count.
std::string WrapText(std::string_view text, std::size_t width, std::size_t indent);

/// Help as wide as the terminal: descriptions wrapped in their column, names without the ranges and
/// exclusions that the descriptions and the errors state.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  std::string Entry(const std::string& name, const std::string& description) const;
  std::size_t width_;
};

}  // namespace foretoken
