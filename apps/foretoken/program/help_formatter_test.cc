#include "apps/foretoken/program/help_formatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include <memory>

#include "apps/foretoken/options/options.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Help, WrapsBetweenWords) {
  EXPECT_EQ(WrapText("one two  three", 7, 2), "one two\n  three");
  EXPECT_EQ(WrapText("incomprehensible", 5, 0), "incomprehensible");
}

TEST(Help, ShowsEverydayOptionsFirstAndTheRestOnDemand) {
  CLI::App app{"", "foretoken"};
  app.formatter(std::make_shared<HelpFormatter>());
  CLI::App* command = app.add_subcommand("run", "Run it");
  DecodingOptions options;
  AddDecodingOptions(command, &options);
  const std::string help = command->help();
  EXPECT_THAT(help, HasSubstr("-n,--max-tokens"));
  EXPECT_THAT(help, Not(HasSubstr("--fanout")));
  EXPECT_THAT(help, HasSubstr("--help-all shows"));
  EXPECT_LT(help.find("--mode "), help.find("--temp"));
  const std::string all = command->help("", CLI::AppFormatMode::All);
  EXPECT_THAT(all, HasSubstr("--fanout SHAPE"));
  EXPECT_THAT(all, HasSubstr("\nSampling:\n"));
  EXPECT_THAT(all, HasSubstr("--prefix-cache,--no-prefix-cache"));
  EXPECT_THAT(all, Not(HasSubstr("{false}")));
  EXPECT_THAT(all, Not(HasSubstr("--help-all shows")));
}

}  // namespace
}  // namespace foretoken
