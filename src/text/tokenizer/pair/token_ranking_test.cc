#include "text/tokenizer/pair/token_ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace foretoken {
namespace {

using testing::HasSubstr;

const Tokenizer& BundledTokenizer() {
  static const auto tokenizer =
      LoadTokenizerFolder(FORETOKEN_SOURCE_DIR "/models/demo-target").value();
  return *tokenizer;
}

std::string Refusal(const std::string& text) {
  const auto ranking = ParseTokenRanking(text, "r.txt");
  return ranking.ok() ? "" : ranking.error().message;
}

TEST(TokenRanking, TheMostFrequentGoFirstAndOfThoseAlikeTheLowerIds) {
  std::vector<std::uint64_t> counts(BundledTokenizer().vocabulary());
  counts[7] = 2;
  counts[300] = 5;
  counts[9] = 2;
  counts[0] = 1;
  const TokenRanking ranking = RankTokens(BundledTokenizer(), counts);
  EXPECT_EQ(ranking.tokenizer, BundledTokenizer().fingerprint());
  EXPECT_EQ(ranking.vocabulary, BundledTokenizer().vocabulary());
  EXPECT_THAT(ranking.entries,
              testing::ElementsAre(TokenRanking::Entry{300, 5}, TokenRanking::Entry{7, 2},
                                   TokenRanking::Entry{9, 2}, TokenRanking::Entry{0, 1}));
  EXPECT_TRUE(CheckRanks(ranking, BundledTokenizer(), "r.txt").ok());
}

TEST(TokenRanking, IsReadAsItWasWritten) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> counts(BundledTokenizer().vocabulary());
    for (std::uint64_t& count : counts) count = random() >> (1 + random() % 63);
    counts[random() % counts.size()] = 1;
    const TokenRanking ranking = RankTokens(BundledTokenizer(), counts);
    const auto read = ParseTokenRanking(FormatTokenRanking(ranking), "r.txt");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, ranking);
  }
}

TEST(TokenRanking, WhatIsNoneIsRefusedWithItsLine) {
  const std::string head = "foretoken-token-ranking 1 abc 10\n";
  EXPECT_EQ(Refusal(head + "3 9\n0 9"), "");
  for (const char* none :
       {"", "3 9\n", "foretoken-token-ranking 2 abc 10\n3 9\n", "foretoken-token-ranking 1 abc\n",
        "foretoken-token-ranking 1 abc 0\n", "foretoken-token-ranking 1  10\n3 9\n",
        "foretoken-token-ranking 1 abc 99999999999\n"}) {
    EXPECT_THAT(Refusal(none), HasSubstr("r.txt is no ranking of tokens, which begins")) << none;
  }
  EXPECT_EQ(Refusal(head), "r.txt ranks no token");
  for (const char* line : {"3", "3 ", "3 x", "x 3", "3 9 1", " 3 9", "3 -1", "", "3,9"}) {
    EXPECT_THAT(Refusal(head + "5 9\n" + line + "\n"),
                HasSubstr("r.txt line 3: '" + std::string(line) + "' is not a token's id"));
  }
  EXPECT_THAT(Refusal(head + "10 9\n"), HasSubstr("line 2: '10 9' is none of the tokenizer's 10"));
  EXPECT_THAT(Refusal(head + "-1 9\n"), HasSubstr("is none of the tokenizer's 10 tokens"));
  EXPECT_THAT(Refusal(head + "3 9\n3 8\n"), HasSubstr("is a token that an earlier line has"));
  EXPECT_THAT(Refusal(head + "3 9\n4 10\n"), HasSubstr("has a higher count than the line before"));
}

TEST(TokenRanking, OfAnotherTokenizerIsRefused) {
  const auto other = ParseTokenRanking("foretoken-token-ranking 1 abc 10\n3 9\n", "r.txt");
  EXPECT_THAT(CheckRanks(*other, BundledTokenizer(), "r.txt").error().message,
              testing::AllOf(HasSubstr("r.txt ranks the tokens of another tokenizer (abc)"),
                             HasSubstr("foretoken datastore rank")));
}

}  // namespace
}  // namespace foretoken
