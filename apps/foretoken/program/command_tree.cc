#include "apps/foretoken/program/command_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/arguments.h"

namespace foretoken {
namespace {

OptionFacts DescribeOption(CLI::Option* option) {
  OptionFacts facts{.text = option->get_description(), .group = option->get_group()};
  for (const std::string& name : option->get_snames()) facts.short_names.push_back("-" + name);
  for (const std::string& name : option->get_lnames()) facts.long_names.push_back("--" + name);
  if (option->get_items_expected_max() > 0) facts.value = option->get_type_name();
  facts.choices = ChoicesOf(option);
  return facts;
}

}  // namespace

std::vector<std::string> OptionFacts::Names() const {
  std::vector<std::string> names = short_names;
  names.insert(names.end(), long_names.begin(), long_names.end());
  return names;
}

std::string OptionFacts::Heading() const {
  return fmt::format("{}{}{}", fmt::join(Names(), ", "), value.empty() ? "" : " ", value);
}

CommandFacts DescribeCommands(CLI::App* app) {
  CommandFacts facts{.path = CommandPath(*app),
                     .name = app->get_name(),
                     .text = app->get_description(),
                     .footer = app->get_footer()};
  for (CLI::Option* option : app->get_options()) {
    if (option->get_positional()) {
      facts.arguments.push_back(DescribeOption(option));
      facts.arguments.back().value = option->get_name(/*positional=*/true);
    }
    if (option->nonpositional()) facts.options.push_back(DescribeOption(option));
  }
  for (CLI::App* command : VisibleCommands(app))
    facts.commands.push_back(DescribeCommands(command));
  return facts;
}

std::vector<const CommandFacts*> AllCommands(const CommandFacts& root) {
  std::vector<const CommandFacts*> all = {&root};
  for (const CommandFacts& command : root.commands) {
    const std::vector<const CommandFacts*> below = AllCommands(command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

std::string ShortText(std::string_view text) {
  std::size_t end = text.size();
  for (const std::string_view stop : {"; ", " (", ": ", ", like ", ", as in "}) {
    end = std::min(end, text.find(stop));
  }
  return std::string(text.substr(0, end));
}

}  // namespace foretoken
