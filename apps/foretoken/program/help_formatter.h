#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

/// Breaks `text` between words so that no line is longer than `width` where its words allow; lines
/// after the first begin with `indent` spaces, which count.
std::string WrapText(std::string_view text, std::size_t width, std::size_t indent);

/// Help as wide as the terminal: --help has everyday options, --help-all every option under its
/// heading. Lines of a footer that begin with two spaces are a table, which --help leaves out.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override;

 private:
  std::string Entry(const std::string& name, const std::string& description) const;
  std::string Arguments(const CLI::App* command) const;
  std::string Options(std::string_view heading,
                      const std::vector<const CLI::Option*>& options) const;
  std::string Everyday(const CLI::App* command) const;
  std::string Groups(const CLI::App* command) const;
  std::string Commands(const CLI::App* command) const;
  std::string Footer(const std::string& paragraphs, bool with_tables) const;

  std::size_t width_;
};

}  // namespace foretoken
