#include <gtest/gtest.h>

#include <random>

#include "base/allocation_counter_testing.h"
#include "core/backend/testing/reference_backend.h"
#include "core/sampling/logprobs.h"
#include "core/sampling/sampler.h"

namespace foretoken {
namespace {

TEST(Sampler, AllocatesInItsConstructorOnly) {
  const int vocabulary = 3000;
  const auto backend = MakeReferenceBackend(Precision::kF32);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 2.0F);
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) logit = normal(random);
  const std::vector<Token> path = {1, 5, 5, 2999};
  std::vector<Candidate> best(8);
  std::vector<TokenLogprob> logprobs;
  logprobs.reserve(11);
  const SamplingParams all = {.temperature = 1,
                              .top_k = 500,
                              .top_p = 0.9F,
                              .min_p = 0.001F,
                              .repetition_penalty = 1.1F,
                              .frequency_penalty = 0.1F,
                              .presence_penalty = 0.1F,
                              .logit_bias = {{4, 1.0F}}};
  SamplingParams nucleus;
  nucleus.temperature = 1;
  nucleus.top_p = 0.99F;

  Sampler sampler(backend.get(), vocabulary);
  TokenHistory history(vocabulary);
  allocations = 0;
  for (Token token = 0; token < vocabulary; ++token) {
    history.AddOutput(token);
    if (token % 100 != 0) continue;
    EXPECT_EQ(sampler.Rank(logits.data(), all, history, path, token, best), best.size());
    EXPECT_EQ(sampler.Rank(logits.data(), nucleus, history, path, token, best), best.size());
    EXPECT_GE(sampler.Choose(logits.data(), {}, history, {}, token).token, 0);
    ComputeLogprobs(logits.data(), vocabulary, token, 10, &logprobs);
  }
  EXPECT_EQ(allocations, 0);
}

}  // namespace
}  // namespace foretoken
