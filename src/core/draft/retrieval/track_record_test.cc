#include "core/draft/retrieval/track_record.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace foretoken {
namespace {

using Tokens = std::vector<Token>;

Proposal Tree(const std::vector<std::pair<int, Token>>& nodes) {
  Proposal proposal;
  for (const auto& [parent, token] : nodes) proposal.Append(parent, token);
  proposal.source = ProposalSource::kRetrieval;
  return proposal;
}

TEST(TrackRecord, BelievesTheScoreUntilItKnowsBetter) {
  TrackRecord record;
  EXPECT_DOUBLE_EQ(record.Chance({0.3, 0}), 0.3);
  EXPECT_DOUBLE_EQ(record.Chance({0, 4}), 0);
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) record.Add({0.3, 2}, random() % 10 == 0);
  EXPECT_NEAR(record.Chance({0.3, 2}), 0.1, 0.03);
  EXPECT_DOUBLE_EQ(record.Chance({0.3, 1}), 0.3);  // Another kind of source.
  EXPECT_DOUBLE_EQ(record.Chance({0.9, 2}), 0.9);  // Another pseudo-probability.
  for (int i = 0; i < 3000; ++i) record.Add({0.3, 2}, random() % 10 != 0);
  EXPECT_NEAR(record.Chance({0.3, 2}), 0.9, 0.03);  // What was seen long ago has decayed.
}

TEST(TrackRecord, KeepsWhatIsWorthItsPrice) {
  // 1: a 0.9, 2: b 0.5 below a, 3: c 0.4, 4: d 0.35 below c, 5: e 0.3 below b.
  const Proposal all = Tree({{0, 10}, {1, 11}, {0, 12}, {3, 13}, {2, 14}});
  const std::vector<CandidateScore> scores = {{0.9, 0}, {0.5, 0}, {0.4, 1}, {0.35, 1}, {0.3, 0}};
  TrackRecord record;
  for (int i = 0; i < 5000; ++i) record.Add({0.4, 1}, false);  // The input is always wrong.
  const auto kept = [&](double price, int max_depth, int max_nodes) {
    Proposal proposal = all;
    record.KeepWorthwhile(scores, std::span(&price, 1), max_depth, max_nodes, &proposal);
    return proposal;
  };
  const Proposal cheap = kept(0.3, 8, 8);
  EXPECT_EQ(Tokens(cheap.tokens.begin(), cheap.tokens.end()), (Tokens{10, 11, 14}));
  EXPECT_TRUE(cheap.IsChain());
  EXPECT_EQ(kept(0, 8, 8).size(), 5);
  EXPECT_EQ(kept(0.3, 2, 8).size(), 2);
  EXPECT_EQ(kept(0.3, 8, 1).size(), 1);
  EXPECT_EQ(kept(0.6, 8, 8).size(), 1);
  Proposal dearer = all;  // The first row is all but free.
  record.KeepWorthwhile(scores, std::vector<double>{0.1, 0.6}, 8, 8, &dearer);
  EXPECT_EQ(dearer.size(), 1);
  // A step is taken where what lies behind it pays for it.
  const std::vector<double> step = {0.1, 0.8, 0.1, 0.1};
  Proposal sure = all;
  record.KeepWorthwhile(scores, step, 8, 8, &sure);
  EXPECT_EQ(sure.size(), 1);  // 0.8, then 0.5 less 0.8 and 0.3 less 0.1.
  const std::vector<CandidateScore> likelier = {{0.9, 0}, {0.75, 0}, {0.4, 1}, {0.35, 1}, {0.7, 0}};
  sure = all;
  record.KeepWorthwhile(likelier, step, 8, 8, &sure);
  EXPECT_EQ(sure.size(), 3);
  const Proposal none = kept(0.95, 8, 8);
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.source, ProposalSource::kNone);
}

TEST(Forecast, IsSettledOnceTheTextHasGoneOn) {
  // After [1 2]: 3, then 4 or 5.
  const std::vector<CandidateScore> scores = {{1, 0}, {0.6, 0}, {0.2, 0}};
  Forecast forecast;
  EXPECT_FALSE(forecast.pending());
  forecast.Make(2, Tree({{0, 3}, {1, 4}, {1, 5}}), scores);
  TrackRecord record;
  forecast.Settle(Tokens{1, 2, 3}, &record);
  EXPECT_TRUE(forecast.pending());
  EXPECT_DOUBLE_EQ(record.Chance(scores[0]), 1);
  forecast.Settle(Tokens{1, 2, 3, 5, 9}, &record);
  EXPECT_FALSE(forecast.pending());
  EXPECT_DOUBLE_EQ(record.Chance(scores[0]), 1);
  EXPECT_LT(record.Chance(scores[1]), 0.6);
  EXPECT_GT(record.Chance(scores[2]), 0.2);
  // A candidate below one that was wrong is wrong, whatever its own token.
  TrackRecord other;
  forecast.Make(2, Tree({{0, 3}, {1, 4}, {1, 5}}), scores);
  forecast.Settle(Tokens{1, 2, 7, 5}, &other);
  EXPECT_LT(other.Chance(scores[2]), 0.2);
}

}  // namespace
}  // namespace foretoken
