#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace foretoken {

// How commands say what they take, without the header of CLI11, which would cost each file three
// seconds: command_line.cc and the files of `program` know it.

/// What a subcommand does once its options are parsed: the program's exit code (0 good, 1 a check
/// failed), or an error (exit code 2 where the input was at fault).
using CommandBody = std::function<Result<int>()>;

/// What the values of an option must be. Made by the functions below.
using ValueCheck = std::shared_ptr<const CLI::Validator>;

/// Checks whose bounds help does not spell out; errors do. For int, double and std::size_t.
template <typename Number>
ValueCheck Between(Number low, Number high);
ValueCheck OneOf(std::vector<std::string> values);
/// Checks the values of `--precision` (ParsePrecision), "auto" among them.
ValueCheck IsPrecision();
/// Checks the values of `--kv` (ParseKvFormat), "auto" among them.
ValueCheck IsKvFormat();
/// Comma-separated items without the spaces around them; empty items are dropped.
std::vector<std::string> SplitList(std::string_view text);
/// The values of the option's OneOf; empty without one.
std::vector<std::string> ChoicesOf(CLI::Option* option);

/// An option that a command has, of which more is said.
class AddedOption {
 public:
  AddedOption(CLI::Option* option) : option_(option) {}
  AddedOption* operator->() { return this; }

  AddedOption check(const ValueCheck& check) const;
  AddedOption required() const;
  /// It cannot be given beside the other, or not without it.
  AddedOption excludes(AddedOption other) const;
  AddedOption needs(AddedOption other) const;
  /// The same by names: options that were added before.
  template <typename... More>
  AddedOption excludes(const char* name, More... more) const {
    Exclude(name);
    (Exclude(more), ...);
    return *this;
  }
  AddedOption needs(const char* name) const;
  /// Its values stand in one argument, with this between them.
  AddedOption delimiter(char between) const;
  /// Whether each value needs the option's name before it.
  AddedOption allow_extra_args(bool allow) const;

  /// Whether the command line gives it, or a variable or configuration file sets it.
  bool has_value() const;

 private:
  void Exclude(const char* name) const;

  CLI::Option* option_;
};

/// Adds a command below `parent`.
CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& text);
/// What help says below the options.
void SetFooter(CLI::App* command, const std::string& text);
/// Where the command is the one that the user chose, parsing sets `*chosen` to `body`.
void WhenChosen(CLI::App* command, CommandBody* chosen, CommandBody body);
/// Leaves the command out of help.
void Hide(CLI::App* command);
/// Exactly one of the commands below it must be given.
void RequireCommand(CLI::App* command);
/// The option that the command has by this name ("--seed").
AddedOption FindOption(CLI::App* command, const std::string& name);
/// An option that the command line gives.
struct GivenOption {
  std::string name;       ///< "-m", or "--seed" where it has no short name.
  std::string long_name;  ///< "seed"
  std::string group;      ///< Its heading in the help.
};
std::vector<GivenOption> GivenOptions(const CLI::App& command);

/// Whether a variable or a configuration file has set the option: its value is not the program's
/// default, though it does not count as given on the command line.
bool IsSet(const CLI::Option& option);
/// Who has, as MarkSet was told; empty: nobody.
std::string SourceOf(const CLI::Option& option);
void MarkSet(CLI::Option* option, std::string source);

/// Adds options under one heading of a command's help; without a name, under the usual one.
class OptionGroup {
 public:
  explicit OptionGroup(CLI::App* app, std::string name = "Options")
      : app_(app), name_(std::move(name)) {}

  /// An option whose value is called `type` in the help. For the types that command_line.cc lists.
  template <typename Value>
  AddedOption operator()(const char* names, Value* value, const char* type,
                         const std::string& help) const;
  /// An option whose text `read` takes, or refuses in a sentence that the user is told.
  AddedOption operator()(const char* names, std::function<Status(const std::string&)> read,
                         const char* type, const std::string& help) const;
  /// An option that may be given several times, whose values `take` gets.
  AddedOption operator()(const char* names,
                         std::function<void(const std::vector<std::string>&)> take,
                         const char* type, const std::string& help) const;
  /// A flag.
  AddedOption operator()(const char* names, bool* value, const char* help) const;

 private:
  CLI::App* app_;
  std::string name_;
};

}  // namespace foretoken
