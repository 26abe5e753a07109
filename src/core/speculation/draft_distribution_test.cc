#include "core/speculation/draft_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/sampling/sampler_testing.h"
#include "core/speculation/rejection.h"

namespace foretoken {
namespace {

using ListedDistribution = std::vector<TokenProbability>;

double SumOfDistribution(const ListedDistribution& distribution) {
  double sum = 0;
  for (const TokenProbability& entry : distribution) sum += entry.probability;
  return sum;
}

TEST(Distribution, SaguaroIsDefinitionFourteen) {
  const ListedDistribution draft = {{7, 0.5F}, {1, 0.25F}, {4, 0.15F}, {2, 0.1F}};
  ListedDistribution distribution = draft;
  ApplySaguaro(distribution, 2, 0.2);
  const double scale = 1 / (0.2 * 0.75 + 0.25);
  EXPECT_NEAR(distribution[0].probability, 0.2 * 0.5 * scale, 1e-7);
  EXPECT_NEAR(distribution[1].probability, 0.2 * 0.25 * scale, 1e-7);
  EXPECT_NEAR(distribution[2].probability, 0.15 * scale, 1e-7);
  EXPECT_NEAR(distribution[3].probability, 0.1 * scale, 1e-7);
  EXPECT_EQ(distribution[0].token, 7);

  distribution = draft;
  ApplySaguaro(distribution, 1, 0);
  EXPECT_EQ(distribution[0].probability, 0);
  EXPECT_NEAR(SumOfDistribution(distribution), 1, 1e-6);
  for (const int everything : {4, 9}) {
    distribution = draft;
    ApplySaguaro(distribution, everything, 0);  // 0 / 0: the distribution stays.
    EXPECT_EQ(distribution[0].probability, draft[0].probability);
  }
  distribution = draft;
  ApplySaguaro(distribution, 2, 1);
  EXPECT_NEAR(distribution[0].probability, 0.5, 1e-7);
}

TEST(Distribution, DrawsByInversionWithoutReplacement) {
  const ListedDistribution distribution = {{7, 0.5F}, {1, 0.0F}, {4, 0.3F}, {2, 0.2F}};
  EXPECT_EQ(DrawToken(distribution, {}, 0.001), 7);
  EXPECT_EQ(DrawToken(distribution, {}, 0.499), 7);
  EXPECT_EQ(DrawToken(distribution, {}, 0.501), 4);
  EXPECT_EQ(DrawToken(distribution, {}, 0.801), 2);
  EXPECT_EQ(DrawToken(distribution, {}, 1 - 1e-12), 2);
  const std::vector<Token> taken = {7};
  EXPECT_EQ(DrawToken(distribution, taken, 0.599), 4);
  EXPECT_EQ(DrawToken(distribution, taken, 0.601), 2);
  const std::vector<Token> all = {2, 7, 4};
  EXPECT_EQ(DrawToken(distribution, all, 0.5), -1) << "a token of probability 0 is never drawn";
}

TEST(Distribution, ProposalKeepsOneDistributionPerParent) {
  DraftDistributions distributions;
  distributions.SetListed(2, ListedDistribution{{7, 0.5F}, {1, 0.5F}});
  distributions.SetListed(0, ListedDistribution{{3, 1.0F}});
  distributions.SetUniform(1);
  EXPECT_EQ(distributions.at(2).listed.size(), 2U);
  EXPECT_EQ(distributions.at(2).listed[0].token, 7);
  EXPECT_EQ(distributions.at(0).listed[0].token, 3);
  EXPECT_EQ(distributions.at(1).kind, DraftDistribution::Kind::kUniform);
  EXPECT_EQ(distributions.at(3).kind, DraftDistribution::Kind::kPoint);
  distributions.Clear();
  EXPECT_EQ(distributions.at(2).kind, DraftDistribution::Kind::kPoint);
}

TEST(Distribution, DrawsOnDifferentPathsAreIndependent) {
  // Pairs of variables that a careless key would couple, in a 4 x 4 table of 160,000 pairs.
  const auto chi_square = [](const auto& pair) {
    std::array<int, 16> counts{};
    constexpr int kPairs = 160'000;
    for (std::uint64_t seed = 0; seed < kPairs; ++seed) {
      const auto [a, b] = pair(seed);
      ++counts[static_cast<int>(a * 4) * 4 + static_cast<int>(b * 4)];
    }
    double sum = 0;
    for (const int count : counts) sum += (count - kPairs / 16.0) * (count - kPairs / 16.0);
    return sum / (kPairs / 16.0);
  };
  const std::vector<Token> path = {5, 6};
  const std::vector<Token> other = {5, 7};
  const std::vector<Token> shorter = {5};
  constexpr double kBound = 50;  // 15 degrees of freedom: p = 1e-5.
  using Pair = std::pair<double, double>;
  EXPECT_LT(chi_square([&](std::uint64_t seed) {
              return Pair{DraftUniform(seed, 10, path, 0), DraftUniform(seed, 10, other, 0)};
            }),
            kBound);
  EXPECT_LT(chi_square([&](std::uint64_t seed) {
              return Pair{DraftUniform(seed, 10, path, 0), DraftUniform(seed, 11, shorter, 0)};
            }),
            kBound)
      << "the same position in the next round";
  EXPECT_LT(chi_square([&](std::uint64_t seed) {
              return Pair{DraftUniform(seed, 10, path, 0), DraftUniform(seed, 10, path, 1)};
            }),
            kBound);
  EXPECT_LT(chi_square([&](std::uint64_t seed) {
              return Pair{DraftUniform(seed, 10, path, 0), AcceptanceUniform(seed, 12, 0)};
            }),
            kBound);
  EXPECT_LT(chi_square([&](std::uint64_t seed) {
              return Pair{AcceptanceUniform(seed, 12, 0), AcceptanceUniform(seed, 12, 1)};
            }),
            kBound);
}

/// A chain of one token or a tree of two siblings on fixed distributions, drawn with the engine's
/// own random streams.
class StreamTest : public testing::TestWithParam<int> {
 protected:
  static constexpr int kDraws = 500'000;
  static constexpr int kVocabulary = 6;
  const std::vector<float> p_ = {0.3F, 0.25F, 0.2F, 0.15F, 0.1F, 0.0F};
  const ListedDistribution q_ = {{2, 0.4F}, {0, 0.3F}, {5, 0.2F}, {1, 0.1F}};

  enum class Slip { kNone, kReusesVariable, kSetFollowsBonusNoise };

  // The chi-square of the emitted tokens against p; 4 degrees of freedom.
  double ChiSquare(int width, Slip slip) {
    const auto backend = MakeReferenceBackend(Precision::kF32);
    Sampler sampler(backend.get(), kVocabulary);
    const SamplingParams plain{.temperature = 1};
    std::vector<float> logits;
    for (const float probability : p_) logits.push_back(std::log(probability));
    std::vector<int> counts(kVocabulary, 0);
    const TokenHistory history(kVocabulary);
    Proposal proposal;
    DraftDistributions distributions;
    std::vector<float> p;
    for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
      SamplingParams params = plain;
      params.seed = seed;
      const Token noisy = sampler.Choose(logits.data(), params, history, {}, 1).token;
      ListedDistribution distribution = q_;
      if (slip == Slip::kSetFollowsBonusNoise) {
        std::stable_partition(distribution.begin(), distribution.end(),
                              [&](const TokenProbability& entry) { return entry.token == noisy; });
      }
      ApplySaguaro(distribution, 1, 0.3);
      proposal.Clear();
      distributions.Clear();
      distributions.SetListed(0, distribution);
      for (int i = 0; i < width; ++i) {
        proposal.parents.push_back(0);
        proposal.tokens.push_back(
            DrawToken(distribution, proposal.tokens, DraftUniform(seed, 0, {}, i)));
      }
      const Outcome outcome = VerifyRejection(
          proposal, distributions,
          [&](int) {
            p = p_;
            return std::span(p);
          },
          [&](int, int index) {
            return slip == Slip::kReusesVariable ? DraftUniform(seed, 0, {}, index)
                                                 : AcceptanceUniform(seed, 1, index);
          },
          [&](int, std::span<float> weights) {
            return weights.empty() ? noisy : sampler.ChooseByWeight(weights, seed, 1);
          });
      ++counts[outcome.node == 0 ? outcome.bonus : proposal.tokens[outcome.node - 1]];
    }
    EXPECT_EQ(counts[5], 0) << "p gives it no probability";
    double sum = 0;
    for (int i = 0; i < 5; ++i) {
      const double expected = double{p_[i]} * kDraws;
      sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return sum;
  }
};

TEST_P(StreamTest, EmitsTheTargetsDistribution) {
  EXPECT_LT(ChiSquare(GetParam(), Slip::kNone), 23.5);  // p = 1e-4.
}

TEST_P(StreamTest, AReusedVariableShows) {
  EXPECT_GT(ChiSquare(GetParam(), Slip::kReusesVariable), 1000);
}

TEST_P(StreamTest, ADistributionThatLooksAtTheBonusNoiseShows) {
  EXPECT_GT(ChiSquare(GetParam(), Slip::kSetFollowsBonusNoise), 1000);
}

INSTANTIATE_TEST_SUITE_P(ChainAndSiblings, StreamTest, testing::Values(1, 2));

}  // namespace
}  // namespace foretoken
