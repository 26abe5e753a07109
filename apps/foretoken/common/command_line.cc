#include "apps/foretoken/common/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>

namespace foretoken {

template <typename Number>
ValueCheck Between(Number low, Number high) {
  return std::make_shared<CLI::Validator>(CLI::Range(low, high).description(""));
}
template ValueCheck Between(int, int);
template ValueCheck Between(double, double);
template ValueCheck Between(float, float);
template ValueCheck Between(std::int64_t, std::int64_t);
template ValueCheck Between(std::size_t, std::size_t);

// The check's name holds its values, since CLI11 keeps them to itself.
ValueCheck OneOf(std::vector<std::string> values) {
  const std::string name = fmt::format("{}", fmt::join(values, ","));
  return std::make_shared<CLI::Validator>(
      CLI::IsMember(std::move(values)).description("").name(name));
}

ValueCheck IsPrecision() { return OneOf({"auto", "bf16", "f32", "portable"}); }
ValueCheck IsKvFormat() { return OneOf({"auto", "bf16", "f32", "q8_0"}); }

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

std::vector<std::string> ChoicesOf(CLI::Option* option) {
  try {
    for (int i = 0;; ++i) {
      const std::string& name = option->get_validator(i)->get_name();
      if (!name.empty()) return SplitList(name);
    }
  } catch (const CLI::OptionNotFound&) {  // How CLI11 says that there is no further one.
    return {};
  }
}

// CLI11's place for what help shows as a default: this program's help does not.
bool IsSet(const CLI::Option& option) { return !SourceOf(option).empty(); }
std::string SourceOf(const CLI::Option& option) { return option.get_default_str(); }
void MarkSet(CLI::Option* option, std::string source) { option->default_str(std::move(source)); }

AddedOption AddedOption::check(const ValueCheck& check) const {
  option_->check(CLI::Validator(*check));
  return *this;
}
AddedOption AddedOption::required() const { return option_->required(); }
AddedOption AddedOption::excludes(AddedOption other) const {
  option_->excludes(other.option_);
  return *this;
}
AddedOption AddedOption::needs(AddedOption other) const {
  option_->needs(other.option_);
  return *this;
}
AddedOption AddedOption::needs(const char* name) const { return option_->needs(name); }
void AddedOption::Exclude(const char* name) const { option_->excludes(name); }
AddedOption AddedOption::delimiter(char between) const { return option_->delimiter(between); }
AddedOption AddedOption::allow_extra_args(bool allow) const {
  return option_->allow_extra_args(allow);
}
bool AddedOption::has_value() const { return option_->count() > 0 || IsSet(*option_); }

CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& text) {
  return parent->add_subcommand(name, text);
}
void SetFooter(CLI::App* command, const std::string& text) { command->footer(text); }
void WhenChosen(CLI::App* command, CommandBody* chosen, CommandBody body) {
  command->callback([chosen, body = std::move(body)] { *chosen = body; });
}
void Hide(CLI::App* command) { command->group(""); }
void RequireCommand(CLI::App* command) { command->require_subcommand(1); }
AddedOption FindOption(CLI::App* command, const std::string& name) {
  return command->get_option(name);
}

std::vector<GivenOption> GivenOptions(const CLI::App& command) {
  std::vector<GivenOption> given;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const std::vector<std::string>& names = option->get_lnames();
    given.push_back({.name = option->get_name(),
                     .long_name = names.empty() ? std::string() : names.front(),
                     .group = option->get_group()});
  }
  return given;
}

template <typename Value>
AddedOption OptionGroup::operator()(const char* names, Value* value, const char* type,
                                    const std::string& help) const {
  return app_->add_option(names, *value, help)->type_name(type)->group(name_);
}
#define FORETOKEN_OPTION_OF(...)                                                       \
  template AddedOption OptionGroup::operator()(const char*, __VA_ARGS__*, const char*, \
                                               const std::string&) const
FORETOKEN_OPTION_OF(std::string);
FORETOKEN_OPTION_OF(int);
FORETOKEN_OPTION_OF(double);
FORETOKEN_OPTION_OF(float);
FORETOKEN_OPTION_OF(std::int64_t);
FORETOKEN_OPTION_OF(std::uint64_t);
FORETOKEN_OPTION_OF(std::optional<int>);
FORETOKEN_OPTION_OF(std::optional<float>);
FORETOKEN_OPTION_OF(std::optional<double>);
FORETOKEN_OPTION_OF(std::optional<std::string>);
FORETOKEN_OPTION_OF(std::vector<std::string>);
FORETOKEN_OPTION_OF(std::vector<int>);
FORETOKEN_OPTION_OF(std::vector<std::size_t>);
FORETOKEN_OPTION_OF(std::vector<double>);
#undef FORETOKEN_OPTION_OF

AddedOption OptionGroup::operator()(const char* names,
                                    std::function<Status(const std::string&)> read,
                                    const char* type, const std::string& help) const {
  const auto take = [read = std::move(read), names](const std::string& text) {
    const Status status = read(text);
    if (!status.ok()) throw CLI::ValidationError(names, status.error().message);
  };
  return app_->add_option_function<std::string>(names, take, help)->type_name(type)->group(name_);
}

AddedOption OptionGroup::operator()(const char* names,
                                    std::function<void(const std::vector<std::string>&)> take,
                                    const char* type, const std::string& help) const {
  return app_->add_option_function(names, std::move(take), help)
      ->type_name(type)
      ->group(name_)
      ->allow_extra_args(false);
}

AddedOption OptionGroup::operator()(const char* names, bool* value, const char* help) const {
  return app_->add_flag(names, *value, help)->group(name_);
}

}  // namespace foretoken
