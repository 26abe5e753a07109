// Laws of the next token as probabilities: for verification by rejection.

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "sampling/sampler.h"
#include "sampling/softmax.h"

namespace foretoken {

std::span<float> Sampler::Law(const float* logits, const SamplingParams& params,
                              const TokenHistory& history, std::span<const Token> path) {
  FT_CHECK(params.temperature > 0);
  const float* z = Process(logits, params, history, path).values;
  const float max = MaxLogit(z, vocabulary_);
  law_.resize(vocabulary_);
  if (!std::isfinite(max)) {
    std::fill(law_.begin(), law_.end(), 0.0F);
    return law_;
  }
  WriteWeights(z, vocabulary_, max, params.temperature, law_.data());
  const auto scale = static_cast<float>(1 / Sum(law_));
  for (float& probability : law_) probability *= scale;
  return law_;
}

std::span<TokenProbability> Sampler::LikeliestTokens(const float* logits,
                                                     const SamplingParams& params,
                                                     const TokenHistory& history,
                                                     std::span<const Token> path, int most) {
  const std::span<const float> law = Law(logits, params, history, path);
  return likeliest_.Select(law, most);
}

Token Sampler::ChooseByWeight(std::span<float> weights, std::uint64_t seed,
                              std::uint64_t position) {
  TakeLogs(weights);
  Candidate best;
  backend_->NoisyTop(weights.data(), vocabulary_, 1.0F, NoiseKey{seed, position}, {&best, 1});
  return best.token;
}

}  // namespace foretoken
