#include "apps/foretoken/program/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "apps/foretoken/options/options.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Arguments, FamiliarFlagsAreExpandedUntilOptionsEnd) {
  const char* argv[] = {"foretoken", "run", "-md", "dir", "-np", "4", "-n", "8", "--", "-md"};
  EXPECT_THAT(ReadArguments(10, argv),
              ElementsAre("run", "--draft", "dir", "--batch", "4", "-n", "8", "--", "-md"));
}

/// A small tree of commands.
class Commands : public ::testing::Test {
 protected:
  Commands() {
    const OptionGroup add(run_);
    add("text", &text_, "TEXT", "A text");
    add("-n,--max-tokens", &count_, "N", "A count");
    add("--temp,--temperature", &temperature_, "T", "A number");
    add("--chat", &chat_, "A flag");
    hidden_->group("");
  }

  std::string Refusal(const std::vector<std::string>& arguments) {
    const Status status = CheckOptionNames(run_, arguments);
    return status.ok() ? std::string("accepted") : status.error().message;
  }

  CLI::App app_{"", "foretoken"};
  CLI::App* run_ = app_.add_subcommand("run");
  CLI::App* build_ = app_.add_subcommand("datastore")->add_subcommand("build");
  CLI::App* hidden_ = app_.add_subcommand("speculator");
  std::string text_;
  int count_ = 0;
  double temperature_ = 0;
  bool chat_ = false;
};

TEST_F(Commands, AreFoundByTheirWords) {
  const auto found = [&](const std::vector<std::string>& words) {
    return FindCommand(&app_, words).value();
  };
  EXPECT_EQ(found({"run", "datastore"}).app, run_);
  EXPECT_EQ(found({"datastore", "build", "x"}).app, build_);
  EXPECT_EQ(found({"datastore", "build", "x"}).words, 2U);
  EXPECT_EQ(found({"--help"}).app, &app_);
  EXPECT_EQ(found({"speculator"}).app, hidden_);
  EXPECT_EQ(CommandPath(*build_), "foretoken datastore build");
  const std::vector<std::string> wrong = {"datastore", "biuld"};
  EXPECT_EQ(FindCommand(&app_, wrong).error().message,
            "foretoken datastore has no command 'biuld'; did you mean build?");
  const std::vector<std::string> far = {"fly"};
  EXPECT_EQ(FindCommand(&app_, far).error().message,
            "foretoken has no command 'fly'; --help lists them");
}

TEST_F(Commands, RefuseOptionsTheyDoNotHave) {
  EXPECT_EQ(Refusal({"words", "-n", "8", "-n8", "--temp=1", "--temp", "-0.5", "--chat", "-"}),
            "accepted");
  EXPECT_EQ(Refusal({"--", "--warp", "-hf"}), "accepted");
  EXPECT_EQ(Refusal({"--tempp", "1"}), "foretoken run has no option --tempp; did you mean --temp?");
  EXPECT_EQ(Refusal({"-temp", "1"}), "foretoken run has no option -temp; did you mean --temp?");
  EXPECT_EQ(Refusal({"--warp=9"}), "foretoken run has no option --warp; --help-all lists them");
  // Not -h and -ff, nor -n with the value "gl".
  EXPECT_THAT(Refusal({"-hff", "a.gguf"}), HasSubstr("-hff; a file is named behind its model"));
  EXPECT_THAT(Refusal({"-ngl", "99"}), HasSubstr("has no option -ngl; models run on the cores"));
  EXPECT_THAT(Refusal({"-ctk", "q8_0"}), HasSubstr("kept in one format: --kv bf16, f32 or q8_0"));
  EXPECT_THAT(Refusal({"-q"}), HasSubstr("has no option -q"));
}

TEST_F(Commands, RefuseOptionsWithoutTheirValue) {
  EXPECT_EQ(Refusal({"-n"}), "-n needs a value: -n N");
  EXPECT_EQ(Refusal({"--temp", "--chat"}), "--temp needs a value: --temp T");
}

TEST_F(Commands, ExplainWhatTheParserFound) {
  const auto explain = [&](std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      return ExplainParseError(error, run_);
    }
    return std::string("accepted");
  };
  EXPECT_EQ(explain({"run", "one", "two", "three"}),
            "there is no place for the arguments 'two' 'three'; text with spaces needs quotes");
  app_.require_subcommand(1);
  EXPECT_EQ(ExplainParseError(CLI::RequiredError("A subcommand"), &app_),
            "foretoken needs a command; --help lists them");
  EXPECT_EQ(ExplainParseError(CLI::RequiredError("text"), run_),
            "the argument 'text' is missing; --help tells more");
  run_->get_option("--chat")->excludes(run_->get_option("text"));
  EXPECT_THAT(explain({"run", "one", "--chat"}), HasSubstr("the argument 'text'"));
  EXPECT_THAT(explain({"run", "one", "--chat"}), HasSubstr("not both"));
  EXPECT_EQ(explain({"run", "--temp", "1", "--temp", "0"}),
            "--temp is given more than once; give one value");
}

}  // namespace
}  // namespace foretoken
