#include "apps/foretoken/program/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "apps/foretoken/options/options.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two commands, one of which decodes.
class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    const OptionGroup add(run_);
    add("--temp,--temperature", &temperature_, "T", "A number")->check(Between(0.0, 2.0));
    add("--max-tokens", &count_, "N", "A count")->check(Between(1, 100));
    add("--stop", &stops_, "TEXT", "Texts");
    const AddedOption list = add("--cores", &cores_, "LIST", "Cores");
    add("--threads", &threads_, "N", "Instead of cores")->excludes(list);
    const AddedOption chat = add("--chat", &chat_, "A flag");
    add("--system", &system_, "TEXT", "With --chat")->needs(chat);
    add("--cache,!--no-cache", &cache_, "A flag with a negation");
    const OptionGroup serve(serve_);
    serve("--port", &port_, "N", "Of serve alone");
    serve("--temp", &other_temperature_, "T", "A number");
  }

  // The command line, then the levels; the error, or "good".
  std::string Apply(const std::string& line, const std::vector<SettingsLevel>& levels) {
    app_.parse("run " + line);
    const Status status = ApplySettings(levels);
    return status.ok() ? std::string("good") : status.error().message;
  }
  SettingsLevel Variables(std::vector<const char*> variables) {
    variables.push_back(nullptr);
    return ReadVariables(run_, variables.data());
  }
  std::vector<SettingsLevel> File(const std::string& text) {
    auto levels = ParseConfig(text, "my.toml", &app_, run_);
    EXPECT_TRUE(levels.ok()) << levels.error().message;
    return levels.ok() ? *levels : std::vector<SettingsLevel>();
  }
  std::string Refusal(const std::string& text) {
    const auto levels = ParseConfig(text, "my.toml", &app_, run_);
    return levels.ok() ? std::string("accepted") : levels.error().message;
  }

  CLI::App app_{"", "foretoken"};
  CLI::App* run_ = app_.add_subcommand("run");
  CLI::App* serve_ = app_.add_subcommand("serve");
  double temperature_ = 0;
  double other_temperature_ = 0;
  int count_ = 16;
  int port_ = 0;
  int threads_ = 0;
  std::string cores_;
  std::string system_;
  std::vector<std::string> stops_;
  bool chat_ = false;
  bool cache_ = true;
};

TEST_F(SettingsTest, CommandLineThenVariablesThenSectionThenFile) {
  std::vector<SettingsLevel> levels = {Variables(
      {"FORETOKEN_TEMPERATURE=0.5", "FORETOKEN_NO_CACHE=1", "HOME=/x", "FORETOKEN_STOP="})};
  for (SettingsLevel& level :
       File("# Mine\ntemp = 0.1\nmax-tokens = 7\nstop = [\"a b\", \"c\"]\nport = 9\n"
            "[serve]\ntemp = 2\n[run]\nmax-tokens = 8\nchat = true\n")) {
    levels.push_back(std::move(level));
  }
  EXPECT_EQ(Apply("", levels), "good");
  EXPECT_DOUBLE_EQ(temperature_, 0.5);  // The variable, not the file.
  EXPECT_EQ(count_, 8);                 // The section, not the beginning of the file.
  EXPECT_TRUE(chat_);
  EXPECT_FALSE(cache_);
  EXPECT_THAT(stops_, ElementsAre("a b", "c"));
  EXPECT_DOUBLE_EQ(other_temperature_, 0);
  EXPECT_EQ(run_->count("--temp"), 0U);  // Not given, though set.
  EXPECT_TRUE(IsSet(*run_->get_option("--temp")));
  EXPECT_FALSE(IsSet(*run_->get_option("--cores")));
  EXPECT_EQ(SourceOf(*run_->get_option("--max-tokens")), "my.toml:9");
}

TEST_F(SettingsTest, GivenOptionsStay) {
  EXPECT_EQ(Apply("--temp 1 --cores 0-1", {Variables({"FORETOKEN_TEMP=0.5", "FORETOKEN_THREADS=3",
                                                      "FORETOKEN_SYSTEM=Be brief"})}),
            "good");
  EXPECT_DOUBLE_EQ(temperature_, 1);
  EXPECT_EQ(threads_, 0);  // --cores excludes it.
  EXPECT_EQ(system_, "");  // It needs --chat.
}

TEST_F(SettingsTest, CompanionsMayBeSetToo) {
  EXPECT_EQ(Apply("", {Variables({"FORETOKEN_SYSTEM=Be brief"}), File("chat = yes\n")[1]}), "good");
  EXPECT_EQ(system_, "Be brief");
}

TEST_F(SettingsTest, BadValuesNameTheirSource) {
  EXPECT_THAT(Apply("", {Variables({"FORETOKEN_TEMP=9"})}),
              HasSubstr("FORETOKEN_TEMP: --temp: Value 9 not in range"));
  EXPECT_THAT(Apply("", {Variables({"FORETOKEN_CHAT=maybe"})}),
              HasSubstr("FORETOKEN_CHAT: --chat: 'maybe' is neither true nor false"));
  EXPECT_THAT(Apply("", File("\n\nmax-tokens = many\n")), HasSubstr("my.toml:3: --max-tokens: "));
  EXPECT_THAT(Apply("", File("[run]\ncores = 0, 1\n")), HasSubstr("my.toml:2: --cores: takes one"));
  EXPECT_EQ(Apply("", File("temp =\n")), "my.toml:1: --temp: has no value");
  EXPECT_EQ(Apply("", {Variables({"FORETOKEN_CORES=1", "FORETOKEN_THREADS=2"})}),
            "FORETOKEN_CORES and FORETOKEN_THREADS exclude each other: set only one");
}

TEST_F(SettingsTest, UnknownNamesAreRefusedWithANearMiss) {
  EXPECT_EQ(Refusal("temp = 1\ntepm = 1\n"),
            "my.toml:2: no command has an option 'tepm'; did you mean temp?");
  EXPECT_EQ(Refusal("[run]\nport = 1\n"), "my.toml:2: foretoken run has no option 'port'");
  EXPECT_EQ(Refusal("\n[rnu]\ntemp = 1\n"),
            "my.toml:2: the section [rnu] is no command; did you mean run?");
  EXPECT_EQ(Refusal("config = 1\n"), "my.toml:1: no command has an option 'config'");
  const char* variables[] = {"FORETOKEN_TEMPP=1", "FORETOKEN_PORT=1", "FORETOKEN_MODELS=x",
                             "OTHER=1", nullptr};
  EXPECT_THAT(UnknownVariables(&app_, variables),
              ElementsAre("the variable FORETOKEN_TEMPP names no option of any command; did you "
                          "mean FORETOKEN_TEMP?"));
}

TEST_F(SettingsTest, MessagesOfLaterChecksNameTheSource) {
  const std::vector<SettingsLevel> levels = {Variables({"FORETOKEN_CORES=x"})};
  EXPECT_EQ(Apply("", levels), "good");
  EXPECT_EQ(WithSources("--cores 'x' is no list", levels),
            "--cores 'x' is no list (FORETOKEN_CORES sets it)");
  EXPECT_EQ(WithSources("--cores-x is no list", levels), "--cores-x is no list");
  EXPECT_EQ(WithSources("--temp is too high", levels), "--temp is too high");
}

TEST_F(SettingsTest, OnlyCommandsWithOptionsHaveSettings) {
  EXPECT_TRUE(HasSettings(run_));
  EXPECT_FALSE(HasSettings(app_.add_subcommand("man")));  // It has --help.
}

TEST_F(SettingsTest, RequiredOptionsMayBeSet) {
  run_->get_option("--cores")->required();
  const std::vector<CLI::Option*> required = RelaxRequired(run_);
  EXPECT_EQ(Apply("", {}), "good");
  EXPECT_THAT(CheckRequired(required).error().message, HasSubstr("--cores LIST is missing"));
  EXPECT_EQ(Apply("", {Variables({"FORETOKEN_CORES=0"})}), "good");
  EXPECT_TRUE(CheckRequired(required).ok());
}

}  // namespace
}  // namespace foretoken
