#include "core/draft/model/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace foretoken {
namespace {

std::vector<TokenProbability> Likeliest() { return {{7, 0.4F}, {1, 0.3F}, {4, 0.2F}, {2, 0.1F}}; }

TEST(DraftDraw, DrawsFromTheDistributionItLeavesBehind) {
  DraftDraw draw;
  std::map<Token, int> first;
  constexpr int kDraws = 40'000;
  std::vector<TokenProbability> distribution;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    distribution = Likeliest();
    const DrawnTokens ranking = draw.Draw(
        {.root = 3, .children = 2, .seed = seed, .fanout = 1, .saguaro_c = 0.5}, distribution);
    ASSERT_EQ(ranking.size(), 2U);
    EXPECT_NE(ranking[0], ranking[1]) << "drawn without replacement";
    ++first[ranking[0]];
  }
  EXPECT_NEAR(distribution[0].probability, 0.2 / 0.8, 1e-6)
      << "Saguaro's distribution, not the draft's";
  for (const TokenProbability& entry : distribution) {
    EXPECT_NEAR(double(first[entry.token]) / kDraws, entry.probability, 0.01);
  }
}

TEST(DraftDraw, CandidatesAreOthersThanTheDrawnInTheOrderAskedFor) {
  DraftDraw draw;
  std::map<Token, int> best;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    auto distribution = Likeliest();
    DrawnTokens ranking = draw.Draw({.candidates = 3, .seed = seed}, distribution);
    const Token drawn = ranking[0];
    ASSERT_EQ(ranking.size(), 4U);
    EXPECT_EQ(std::count(ranking.begin(), ranking.end(), drawn), 1);

    distribution = Likeliest();
    ranking =
        draw.Draw({.candidates = 9, .seed = seed, .order = CacheOrder::kProbability}, distribution);
    EXPECT_EQ(ranking[0], drawn) << "the order of candidates changes no draw";
    std::vector<Token> others = {7, 1, 4, 2};
    std::erase(others, drawn);
    EXPECT_TRUE(std::equal(ranking.begin() + 1, ranking.end(), others.begin(), others.end()));

    // At a leaf the best candidate is the draft's own choice by shared noise: a draw from its
    // distribution.
    distribution = Likeliest();
    ++best[draw.Draw({.children = 0, .candidates = 1, .seed = seed}, distribution)[0]];
  }
  for (const TokenProbability& entry : Likeliest()) {
    EXPECT_NEAR(best[entry.token] / 20'000.0, entry.probability, 0.015);
  }
}

}  // namespace
}  // namespace foretoken
