#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/command_tree.h"
#include "apps/foretoken/program/documents.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A tree with every kind of thing in it.
class Documents : public ::testing::Test {
 protected:
  Documents() {
    CLI::App* run = app_.add_subcommand("run", "Run it");
    const OptionGroup add(run, "Running");
    add("text", &text_, "TEXT", "A text");
    add("-m,--mode", &text_, "MODE", "It's how; more of it")->check(OneOf({"ar", "sd"}));
    add("--in", &text_, "FILE", "A file");
    add("--from", &text_, "DIR", "A folder");
    add("--model", &text_, "MODEL", "A folder or a file");
    add("--fast,!--no-fast", &flag_, ".dotted [text]: of a flag");
    CLI::App* store = app_.add_subcommand("store", "Keep it");
    const OptionGroup build(store->add_subcommand("build", "Build it"));
    build("shell", &text_, "SHELL", "Which")->check(OneOf({"bash", "zsh"}));
    app_.add_subcommand("secret", "Not shown")->group("");
  }

  CLI::App app_{"All of it", "foretoken"};
  std::string text_;
  bool flag_ = false;
};

TEST_F(Documents, TheTreeIsWhatTheParserKnows) {
  const CommandFacts root = DescribeCommands(&app_);
  ASSERT_EQ(root.commands.size(), 2U);
  const CommandFacts& run = root.commands[0];
  EXPECT_EQ(run.path, "foretoken run");
  ASSERT_EQ(run.arguments.size(), 1U);
  EXPECT_EQ(run.arguments[0].value, "text");
  ASSERT_EQ(run.options.size(), 6U);  // With --help.
  EXPECT_EQ(run.options[1].Heading(), "-m, --mode MODE");
  EXPECT_THAT(run.options[1].choices, ElementsAre("ar", "sd"));
  EXPECT_THAT(run.options[5].Names(), ElementsAre("--fast", "--no-fast"));
  EXPECT_EQ(run.options[5].value, "");
  EXPECT_EQ(AllCommands(root).size(), 4U);
  EXPECT_EQ(ShortText("A number (default 1); 0 is none"), "A number");
}

TEST_F(Documents, CompletionsOfferCommandsOptionsAndValues) {
  const CommandFacts root = DescribeCommands(&app_);
  const std::string bash = BashCompletions(root);
  EXPECT_THAT(bash, HasSubstr("-m|--mode) COMPREPLY=($(compgen -W 'ar sd'"));
  EXPECT_THAT(bash, HasSubstr("--in) _foretoken_paths -f"));
  EXPECT_THAT(bash, HasSubstr("--from) _foretoken_paths -d"));
  EXPECT_THAT(bash, HasSubstr("--model) _foretoken_paths -f"));
  EXPECT_THAT(bash, HasSubstr("local -a paths=('' 'run' 'store' 'store build')"));
  EXPECT_THAT(bash, HasSubstr("words='run store'"));
  EXPECT_THAT(bash, HasSubstr("words='bash zsh'"));
  const std::string zsh = ZshCompletions(root);
  EXPECT_THAT(zsh, HasSubstr("'*:argument:(bash zsh)'"));
  EXPECT_THAT(zsh, HasSubstr("'*--mode[It'\\''s how]:value:(ar sd)'"));
  EXPECT_THAT(zsh, HasSubstr("'*--no-fast[.dotted \\[text\\]]'"));
  EXPECT_THAT(zsh, HasSubstr("'build:Build it'"));
  const std::string fish = FishCompletions(root);
  EXPECT_THAT(fish, HasSubstr("-n '__fish_seen_subcommand_from run' -s m -l mode -x -a 'ar sd'"));
  EXPECT_THAT(fish, HasSubstr("from build' -a 'bash zsh'"));
  EXPECT_THAT(fish, HasSubstr("-n 'not __fish_seen_subcommand_from run store' -a run -d 'Run it'"));
  for (const std::string& script : {bash, zsh, fish}) EXPECT_THAT(script, Not(HasSubstr("secret")));
}

TEST_F(Documents, TheManPageHasEveryOption) {
  const std::string page = ManPage(DescribeCommands(&app_), "1.2");
  EXPECT_THAT(page, HasSubstr(".SH FORETOKEN STORE BUILD\n"));
  EXPECT_THAT(page, HasSubstr(".SS Running\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n.B \\-m, \\-\\-mode MODE\nIt's how; more of it\n"));
  EXPECT_THAT(page, HasSubstr("\n\\&.dotted [text]: of a flag\n"));  // No request of man(7).
}

}  // namespace
}  // namespace foretoken
