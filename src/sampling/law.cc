// Laws of the next token as probabilities: for verification by rejection.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sampling/sampler.h"
#include "sampling/softmax.h"

namespace foretoken {

std::span<float> Sampler::Law(const float* logits, const SamplingParams& params,
                              const TokenHistory& history, std::span<const Token> path) {
  FT_CHECK(params.temperature > 0);
  const float* z = Process(logits, params, history, path).values;
  const float max = MaxLogit(z, vocabulary_);
  law_.assign(vocabulary_, 0.0F);
  if (!std::isfinite(max)) return law_;
  double sum = 0;
  for (int i = 0; i < vocabulary_; ++i) {
    // A removed token has probability 0, not merely next to none; NaN compares false.
    law_[i] = z[i] > -std::numeric_limits<float>::infinity() ? Weight(z[i], max, params.temperature)
                                                             : 0.0F;
    sum += law_[i];
  }
  for (float& probability : law_) probability = static_cast<float>(probability / sum);
  return law_;
}

std::span<TokenProbability> Sampler::LikeliestTokens(const float* logits,
                                                     const SamplingParams& params,
                                                     const TokenHistory& history,
                                                     std::span<const Token> path, int most) {
  const std::span<const float> law = Law(logits, params, history, path);
  likeliest_.clear();
  likeliest_.reserve(vocabulary_);
  for (int i = 0; i < vocabulary_; ++i) {
    if (law[i] > 0) likeliest_.push_back({i, law[i]});
  }
  const auto likelier = [](const TokenProbability& a, const TokenProbability& b) {
    return a.probability > b.probability || (a.probability == b.probability && a.token < b.token);
  };
  if (std::ssize(likeliest_) > most) {
    std::nth_element(likeliest_.begin(), likeliest_.begin() + most, likeliest_.end(), likelier);
    likeliest_.resize(most);
  }
  std::sort(likeliest_.begin(), likeliest_.end(), likelier);
  double sum = 0;
  for (const TokenProbability& entry : likeliest_) sum += entry.probability;
  for (TokenProbability& entry : likeliest_) {
    entry.probability = static_cast<float>(entry.probability / sum);
  }
  return likeliest_;
}

Token Sampler::ChooseByWeight(std::span<float> weights, std::uint64_t seed,
                              std::uint64_t position) {
  for (float& weight : weights) weight = std::log(weight);
  Candidate best;
  backend_->NoisyTop(weights.data(), vocabulary_, 1.0F, NoiseKey{seed, position}, {&best, 1});
  return best.token;
}

}  // namespace foretoken
