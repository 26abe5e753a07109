#include "core/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/numbers/philox.h"
#include "core/backend/testing/reference_backend.h"
#include "core/sampling/logprobs.h"

namespace foretoken {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The logits after every option, by the book: counts from whole token lists, one full sort,
/// everything in double. Removed tokens are -inf.
std::vector<double> ProcessNaively(const std::vector<float>& logits, const SamplingParams& params,
                                   std::vector<Token> prompt, std::vector<Token> output) {
  if (params.penalty_window >= 0) {
    const std::size_t window = params.penalty_window;
    const std::size_t from_prompt = window - std::min(window, output.size());
    output.erase(output.begin(), output.end() - std::min(window, output.size()));
    prompt.erase(prompt.begin(), prompt.end() - std::min(from_prompt, prompt.size()));
  }
  const int vocabulary = logits.size();
  std::vector<double> z(logits.begin(), logits.end());
  for (Token i = 0; i < vocabulary; ++i) {
    if (std::isnan(z[i])) z[i] = -kInfinity;
    const auto in_output = std::ranges::count(output, i);
    if (in_output > 0 || std::ranges::count(prompt, i) > 0) {
      z[i] = z[i] > 0 ? z[i] / params.repetition_penalty : z[i] * params.repetition_penalty;
    }
    if (in_output > 0) {
      z[i] -= double(params.frequency_penalty) * double(in_output) + params.presence_penalty;
    }
  }
  for (const auto& [token, bias] : params.logit_bias) z[token] += bias;
  if (params.temperature == 0) return z;

  std::vector<Token> order(vocabulary);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](Token a, Token b) { return z[a] > z[b]; });
  std::size_t keep =
      params.top_k > 0 ? std::min<std::size_t>(params.top_k, order.size()) : order.size();
  std::vector<double> p(keep);
  for (std::size_t i = 0; i < keep; ++i) {
    p[i] = std::exp((z[order[i]] - z[order[0]]) / params.temperature);
  }
  if (params.top_p < 1) {
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    double mass = 0;
    std::size_t nucleus = 0;
    while (nucleus < keep && (nucleus == 0 || mass < params.top_p * total)) mass += p[nucleus++];
    keep = nucleus;
  }
  while (keep > 1 && p[keep - 1] < params.min_p * p[0]) --keep;
  for (std::size_t i = keep; i < order.size(); ++i) z[order[i]] = -kInfinity;
  return z;
}

class SamplerTest : public testing::Test {
 protected:
  std::vector<float> RandomLogits(int vocabulary, float scale) {
    std::normal_distribution<float> normal(0.0F, scale);
    std::vector<float> logits(vocabulary);
    for (float& logit : logits) logit = normal(random_);
    return logits;
  }
  std::vector<Token> RandomTokens(int vocabulary, int count) {
    std::vector<Token> tokens(count);
    for (Token& token : tokens) token = static_cast<Token>(random_() % vocabulary);
    return tokens;
  }

  /// Compares the whole ranking with the naive one: which tokens are left, in which order, and
  /// with which scores.
  void ExpectNaive(const std::vector<float>& logits, const SamplingParams& params,
                   const std::vector<Token>& prompt, const std::vector<Token>& output,
                   const std::vector<Token>& path, std::uint64_t position) {
    const int vocabulary = logits.size();
    Sampler sampler(backend_.get(), vocabulary);
    TokenHistory history(vocabulary, params.penalty_window);
    history.AddPrompt(prompt);
    for (const Token token : output) history.AddOutput(token);
    std::vector<Candidate> best(vocabulary);
    best.resize(sampler.Rank(logits.data(), params, history, path, position, best));

    std::vector<Token> emitted = output;
    emitted.insert(emitted.end(), path.begin(), path.end());
    const std::vector<double> z = ProcessNaively(logits, params, prompt, emitted);
    std::vector<Candidate> expected;
    for (Token i = 0; i < vocabulary; ++i) {
      if (z[i] == -kInfinity) continue;
      const double u = UnitInterval(
          PhiloxDraw(params.seed, position, std::uint32_t(i), NoisePurpose::kSampling));
      const double score =
          params.temperature == 0 ? z[i] : z[i] / params.temperature - std::log(-std::log(u));
      expected.push_back({i, score});
    }
    std::ranges::stable_sort(
        expected, [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    ASSERT_EQ(best.size(), expected.size());
    for (std::size_t i = 0; i < best.size(); ++i) {
      ASSERT_NEAR(best[i].score, expected[i].score, 1e-4 * (1 + std::abs(expected[i].score)));
    }
    ASSERT_EQ(best[0].token, expected[0].token);
    const Candidate chosen = sampler.Choose(logits.data(), params, history, path, position);
    EXPECT_EQ(chosen.token, best[0].token);
    EXPECT_EQ(chosen.score, best[0].score);
  }

  void ExpectNaive(const SamplingParams& params) {
    for (const int vocabulary : {1, 2, 7, 50, 333}) {
      for (int trial = 0; trial < 8; ++trial) {
        ExpectNaive(RandomLogits(vocabulary, trial % 2 == 0 ? 3.0F : 0.2F), params,
                    RandomTokens(vocabulary, 20), RandomTokens(vocabulary, 15),
                    RandomTokens(vocabulary, trial), trial);
      }
    }
  }

  std::mt19937 random_{7};
  std::unique_ptr<Backend> backend_ = MakeReferenceBackend(Precision::kF32);
};

TEST_F(SamplerTest, GreedyTakesTheLargestTiesToTheLowestId) {
  Sampler sampler(backend_.get(), 5);
  const TokenHistory history(5);
  const float logits[] = {1, 4, kNaN, 4, -kInfinity};
  EXPECT_EQ(sampler.Choose(logits, {}, history, {}, 3).token, 1);
  EXPECT_EQ(sampler.Choose(logits, {}, history, {}, 3).score, 4.0);
  const float none[] = {kNaN, kNaN, -kInfinity, kNaN, kNaN};
  EXPECT_EQ(sampler.Choose(none, {}, history, {}, 3).token, -1);
  EXPECT_EQ(sampler
                .Choose(none, {.temperature = 1, .top_k = 2, .top_p = 0.5F, .min_p = 0.1F}, history,
                        {}, 3)
                .token,
            -1);
}

TEST_F(SamplerTest, FiltersDoNothingToGreedy) {
  ExpectNaive({.top_k = 1, .top_p = 0.1F, .min_p = 0.9F});
}

TEST_F(SamplerTest, EachOptionAlone) {
  for (const float temperature : {0.0F, 0.3F, 1.0F, 2.5F}) {
    ExpectNaive({.temperature = temperature});
    for (const int k : {1, 2, 5, 40, 1000}) ExpectNaive({.temperature = temperature, .top_k = k});
    for (const float p : {0.0F, 0.1F, 0.5F, 0.9F, 0.999F}) {
      ExpectNaive({.temperature = temperature, .top_p = p});
    }
    for (const float p : {0.01F, 0.3F, 1.0F}) {
      ExpectNaive({.temperature = temperature, .min_p = p});
    }
    ExpectNaive({.temperature = temperature, .repetition_penalty = 1.3F});
    ExpectNaive({.temperature = temperature, .repetition_penalty = 0.7F});
    ExpectNaive({.temperature = temperature, .frequency_penalty = 0.4F});
    ExpectNaive({.temperature = temperature, .presence_penalty = -0.6F});
    // The text has 20 tokens of a prompt, 15 of output and up to 7 of a path.
    for (const int window : {0, 1, 3, 7, 16, 30, 64}) {
      ExpectNaive({.temperature = temperature,
                   .repetition_penalty = 1.3F,
                   .frequency_penalty = 0.4F,
                   .presence_penalty = -0.6F,
                   .penalty_window = window});
    }
    ExpectNaive({.temperature = temperature, .logit_bias = {{0, 3.0F}, {0, -100.0F}}});
  }
}

TEST_F(SamplerTest, OptionsCombined) {
  const auto uniform = [this](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random_);
  };
  for (int trial = 0; trial < 60; ++trial) {
    ExpectNaive({.temperature = uniform(0.1F, 2.0F),
                 .top_k = static_cast<int>(random_() % 60),
                 .top_p = uniform(0.2F, 1.0F),
                 .min_p = uniform(0.0F, 0.2F),
                 .repetition_penalty = uniform(0.8F, 1.5F),
                 .frequency_penalty = uniform(-0.5F, 0.5F),
                 .presence_penalty = uniform(-0.5F, 0.5F),
                 .penalty_window = static_cast<int>(random_() % 50) - 1,
                 .logit_bias = {{0, uniform(-2.0F, 2.0F)}},
                 .seed = random_()});
  }
}

TEST_F(SamplerTest, FiltersOverALargeVocabulary) {
  const int vocabulary = 50'000;
  for (const float scale : {0.01F, 2.0F, 6.0F}) {
    const std::vector<float> logits = RandomLogits(vocabulary, scale);
    for (const SamplingParams& params : {SamplingParams{.temperature = 1, .top_k = 40},
                                         {.temperature = 1, .top_k = 5000},
                                         {.temperature = 0.8F, .top_p = 0.95F},
                                         {.temperature = 1, .top_k = 300, .top_p = 0.9F},
                                         {.temperature = 1.2F, .top_p = 0.9F, .min_p = 0.05F}}) {
      ExpectNaive(logits, params, {}, {}, {}, 11);
    }
  }
}

TEST_F(SamplerTest, FiltersKeepTheLowestIdsAmongEqualLogits) {
  const std::vector<float> logits = {1, 2, 2, 1, 2, 2, kNaN, -kInfinity};
  const auto kept = [&](const SamplingParams& params) {
    Sampler sampler(backend_.get(), 8);
    std::vector<Candidate> best(8);
    best.resize(sampler.Rank(logits.data(), params, TokenHistory(8), {}, 0, best));
    std::vector<Token> tokens;
    for (const Candidate& candidate : best) tokens.push_back(candidate.token);
    std::ranges::sort(tokens);
    return tokens;
  };
  EXPECT_EQ(kept({.temperature = 1, .top_k = 3}), (std::vector<Token>{1, 2, 4}));
  EXPECT_EQ(kept({.temperature = 1, .top_k = 5}), (std::vector<Token>{0, 1, 2, 4, 5}));
  EXPECT_EQ(kept({.temperature = 1, .top_k = 4, .top_p = 0.5F}), (std::vector<Token>{1, 2}));
  EXPECT_EQ(kept({.temperature = 1, .min_p = 1.0F}), (std::vector<Token>{1, 2, 4, 5}));
  EXPECT_EQ(kept({.temperature = 1}), (std::vector<Token>{0, 1, 2, 3, 4, 5}));
}

TEST_F(SamplerTest, APathCountsAsOutput) {
  const int vocabulary = 30;
  Sampler sampler(backend_.get(), vocabulary);
  for (int trial = 0; trial < 50; ++trial) {
    const SamplingParams params = {.temperature = 0.7F,
                                   .repetition_penalty = 1.2F,
                                   .frequency_penalty = 0.3F,
                                   .presence_penalty = 0.1F,
                                   .penalty_window = trial % 25 - 1};
    const std::vector<float> logits = RandomLogits(vocabulary, 1.0F);
    const std::vector<Token> prompt = RandomTokens(vocabulary, 4);
    const std::vector<Token> path = RandomTokens(vocabulary, 12);
    TokenHistory before(vocabulary, params.penalty_window);
    before.AddPrompt(prompt);
    before.AddOutput(prompt[0]);
    TokenHistory after = before;
    for (const Token token : path) after.AddOutput(token);
    std::vector<Candidate> with_path(vocabulary);
    std::vector<Candidate> with_history(vocabulary);
    sampler.Rank(logits.data(), params, before, path, trial, with_path);
    sampler.Rank(logits.data(), params, after, {}, trial, with_history);
    for (int i = 0; i < vocabulary; ++i) {
      ASSERT_EQ(with_path[i].token, with_history[i].token);
      ASSERT_EQ(with_path[i].score, with_history[i].score);
    }
  }
}

TEST_F(SamplerTest, DrawsFollowTheDistribution) {
  const std::vector<float> logits = {0.5F, -1.0F, 2.0F, 1.5F, -3.0F, 0.0F, 1.0F, 1.5F};
  const int vocabulary = logits.size();
  constexpr int kDraws = 200'000;
  Sampler sampler(backend_.get(), vocabulary);
  const TokenHistory history(vocabulary);
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 1, .seed = 1},
        {.temperature = 0.6F, .seed = 2},
        {.temperature = 1, .top_k = 4, .seed = 3},
        {.temperature = 1.5F, .top_p = 0.8F, .seed = 4},
        {.temperature = 1, .min_p = 0.2F, .seed = 5},
        {.temperature = 0.9F, .top_k = 6, .top_p = 0.95F, .min_p = 0.1F, .seed = 6}}) {
    std::vector<double> p = ProcessNaively(logits, params, {}, {});
    for (double& x : p) x = std::exp(x / params.temperature);
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    std::vector<int> counts(vocabulary, 0);
    for (int position = 0; position < kDraws; ++position) {
      ++counts[sampler.Choose(logits.data(), params, history, {}, position).token];
    }
    double chi_square = 0;
    int freedom = -1;
    for (int i = 0; i < vocabulary; ++i) {
      const double expected = kDraws * p[i] / total;
      if (expected == 0) {
        EXPECT_EQ(counts[i], 0);
        continue;
      }
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
      ++freedom;
    }
    ASSERT_GE(freedom, 2);
    EXPECT_LT(chi_square, freedom + 4 * std::sqrt(2.0 * freedom)) << "seed " << params.seed;
  }
}

TEST_F(SamplerTest, SameArgumentsSameTokenAndSeedsAreIndependent) {
  const int vocabulary = 4;
  const std::vector<float> logits(vocabulary, 0.0F);
  Sampler sampler(backend_.get(), vocabulary);
  Sampler other(backend_.get(), vocabulary);
  const TokenHistory history(vocabulary);
  constexpr int kDraws = 40'000;
  std::vector<int> joint(vocabulary * vocabulary, 0);
  for (int position = 0; position < kDraws; ++position) {
    const auto choose = [&](Sampler& s, std::uint64_t seed) {
      return s.Choose(logits.data(), {.temperature = 1, .seed = seed}, history, {}, position).token;
    };
    const Token a = choose(sampler, 10);
    ASSERT_EQ(a, choose(other, 10));
    ++joint[a * vocabulary + choose(sampler, 11)];
  }
  const double expected = double(kDraws) / (vocabulary * vocabulary);
  double chi_square = 0;
  for (const int count : joint) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 15 + 4 * std::sqrt(30.0));
}

TEST(TokenHistory, CountsOutputAndRemembersThePrompt) {
  TokenHistory history(10);
  history.AddPrompt(std::vector<Token>{3, 1, 3});
  history.AddOutput(5);
  history.AddOutput(1);
  history.AddOutput(5);
  EXPECT_TRUE(history.InPrompt(3));
  EXPECT_FALSE(history.InPrompt(5));
  EXPECT_EQ(history.OutputCount(5), 2);
  EXPECT_EQ(history.OutputCount(3), 0);
  EXPECT_EQ(std::vector<Token>(history.seen().begin(), history.seen().end()),
            (std::vector<Token>{3, 1, 5}));
}

TEST(TokenHistory, RemembersTheLatestTokensInTheirOrder) {
  TokenHistory history(10, 3);
  EXPECT_EQ(history.recent_tokens(), 0U);
  history.AddPrompt(std::vector<Token>{3, 1});
  EXPECT_EQ(history.recent_tokens(), 2U);
  history.AddOutput(5);
  history.AddOutput(1);
  ASSERT_EQ(history.recent_tokens(), 3U);
  EXPECT_EQ(history.Recent(0), 1);
  EXPECT_EQ(history.Recent(1), 5);
  EXPECT_EQ(history.Recent(2), 1);
  EXPECT_TRUE(history.IsOutput(1));
  EXPECT_FALSE(history.IsOutput(2));
}

TEST(ValidateSamplingParams, NamesTheOption) {
  EXPECT_TRUE(ValidateSamplingParams({}, 10).ok());
  EXPECT_TRUE(ValidateSamplingParams(
                  {.temperature = 1, .top_k = 5, .top_p = 0, .logit_bias = {{9, -100.0F}}}, 10)
                  .ok());
  const auto refused = [](const SamplingParams& params, const char* name) {
    const Status status = ValidateSamplingParams(params, 10);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidInput);
    EXPECT_TRUE(status.error().message.starts_with(name)) << status.error().message;
  };
  for (const float bad : {-0.1F, kNaN, kInfinity}) {
    refused({.temperature = bad}, "temperature");
    refused({.top_p = bad}, "top_p");
    refused({.min_p = bad}, "min_p");
    refused({.repetition_penalty = bad}, "repetition_penalty");
  }
  refused({.top_k = -1}, "top_k");
  refused({.penalty_window = -2}, "penalty_window");
  refused({.top_p = 1.5F}, "top_p");
  refused({.repetition_penalty = 0}, "repetition_penalty");
  refused({.frequency_penalty = kNaN}, "frequency_penalty");
  refused({.presence_penalty = kInfinity}, "presence_penalty");
  refused({.logit_bias = {{10, 1.0F}}}, "logit_bias");
  refused({.logit_bias = {{-1, 1.0F}}}, "logit_bias");
  refused({.logit_bias = {{1, kNaN}}}, "logit_bias");
  refused({.top_logprobs = -2}, "top_logprobs");
  refused({.top_logprobs = kMaxTopLogprobs + 1}, "top_logprobs");
}

TEST(ComputeLogprobs, ChosenThenTheMostLikely) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(1000);
  for (float& logit : logits) logit = normal(random);
  logits[400] = logits[20] = 50;
  logits[7] = kNaN;
  double total = 0;
  for (const float logit : logits) total += std::isnan(logit) ? 0 : std::exp(double{logit});
  std::vector<TokenLogprob> out;
  ComputeLogprobs(logits.data(), 1000, 123, 5, &out);
  ASSERT_EQ(out.size(), 6U);
  EXPECT_EQ(out[0].token, 123);
  EXPECT_EQ(out[1].token, 20);
  EXPECT_EQ(out[2].token, 400);
  std::vector<float> sorted = logits;
  sorted[7] = -kInfinity;
  std::ranges::sort(sorted, std::greater());
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_NEAR(out[i].logprob, logits[out[i].token] - std::log(total), 1e-5);
    EXPECT_TRUE(i == 0 || logits[out[i].token] == sorted[i - 1]);
  }
  ComputeLogprobs(logits.data(), 1000, 7, 0, &out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].logprob, -kInfinity);
}

}  // namespace
}  // namespace foretoken
