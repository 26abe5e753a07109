#include "core/sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/sampling/softmax.h"

namespace foretoken {
namespace {

float Penalize(float logit, const SamplingParams& params, int output_count) {
  logit = logit > 0.0F ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  if (output_count == 0) return logit;
  return logit - params.frequency_penalty * static_cast<float>(output_count) -
         params.presence_penalty;
}

// Sets the logits of tokens whose bit is not set to -inf; those that have no bit, too.
void LeaveOut(std::span<const std::uint64_t> allowed, std::span<float> logits) {
  for (std::size_t begin = 0; begin < logits.size(); begin += 64) {
    const std::uint64_t word = begin / 64 < allowed.size() ? allowed[begin / 64] : 0;
    const std::size_t count = std::min<std::size_t>(64, logits.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      logits[begin + i] = (word >> i & 1) != 0 ? logits[begin + i] : kMinusInfinity;
    }
  }
}

}  // namespace

Sampler::Sampler(Backend* backend, int vocabulary)
    : backend_(backend),
      vocabulary_(vocabulary),
      processed_(vocabulary),
      path_counts_(vocabulary, 0),
      filter_(vocabulary) {}

Candidate Sampler::Choose(Logits logits, const SamplingParams& params, const TokenHistory& history,
                          std::span<const Token> path, std::uint64_t position) {
  Candidate best;
  const std::size_t found = Rank(logits, params, history, path, position, {&best, 1});
  return found > 0 ? best : Candidate{};
}

std::size_t Sampler::Rank(Logits logits, const SamplingParams& params, const TokenHistory& history,
                          std::span<const Token> path, std::uint64_t position,
                          std::span<Candidate> best) {
  return backend_->NoisyTop(Process(logits, params, history, path), vocabulary_, params.temperature,
                            NoiseKey{params.seed, position}, best);
}

std::span<float> Sampler::Probabilities(const float* logits, const SamplingParams& params,
                                        const TokenHistory& history, std::span<const Token> path) {
  FT_CHECK(params.temperature > 0);
  const float* z = Process(logits, params, history, path).values;
  const float max = MaxLogit(z, vocabulary_);
  probabilities_.resize(vocabulary_);
  if (!std::isfinite(max)) {
    std::fill(probabilities_.begin(), probabilities_.end(), 0.0F);
    return probabilities_;
  }
  WriteWeights(z, vocabulary_, max, params.temperature, probabilities_.data());
  const auto scale = static_cast<float>(1 / Sum(probabilities_));
  for (float& probability : probabilities_) probability *= scale;
  return probabilities_;
}

std::span<TokenProbability> Sampler::LikeliestTokens(const float* logits,
                                                     const SamplingParams& params,
                                                     const TokenHistory& history,
                                                     std::span<const Token> path, int most) {
  return likeliest_.Select(Probabilities(logits, params, history, path), most);
}

Token Sampler::ChooseByWeight(std::span<float> weights, std::uint64_t seed,
                              std::uint64_t position) {
  TakeLogs(weights);
  Candidate best;
  const std::size_t found =
      backend_->NoisyTop(weights.data(), vocabulary_, 1.0F, NoiseKey{seed, position}, {&best, 1});
  return found > 0 ? best.token : -1;
}

Logits Sampler::Process(Logits logits, const SamplingParams& params, const TokenHistory& history,
                        std::span<const Token> path) {
  const bool filters = params.has_filters() && params.temperature > 0.0F;
  const ConstraintCursor* constraint = history.constraint();
  if (!params.has_penalties() && params.logit_bias.empty() && !filters && constraint == nullptr) {
    return logits;
  }
  const float* const z = logits.values;
  for (int i = 0; i < vocabulary_; ++i) {
    processed_[i] = z[i] == z[i] ? z[i] : kMinusInfinity;  // NaN differs from itself.
  }
  if (params.has_penalties()) ApplyPenalties(params, history, path);
  for (const auto& [token, bias] : params.logit_bias) processed_[token] += bias;
  if (constraint != nullptr) LeaveOut(constraint->Mask(path), processed_);
  if (filters) filter_.Apply(params, processed_.data());
  return processed_.data();
}

void Sampler::ApplyPenalties(const SamplingParams& params, const TokenHistory& history,
                             std::span<const Token> path) {
  for (const Token token : path) {
    FT_CHECK(token >= 0 && token < vocabulary_, "token {} of {}", token, vocabulary_);
  }
  if (params.penalty_window > 0) return PenalizeRecent(params, history, path);
  for (const Token token : path) ++path_counts_[token];
  const auto penalize = [&](Token token) {
    processed_[token] =
        Penalize(processed_[token], params, history.OutputCount(token) + path_counts_[token]);
    path_counts_[token] = 0;
  };
  for (const Token token : history.seen()) penalize(token);
  // What still has a count is new on the path.
  for (const Token token : path) {
    if (path_counts_[token] > 0) penalize(token);
  }
}

// The same of the latest tokens, those of the path behind the history's: what is further back
// counts for nothing.
void Sampler::PenalizeRecent(const SamplingParams& params, const TokenHistory& history,
                             std::span<const Token> path) {
  constexpr std::int32_t kPenalized = -1;
  const std::size_t window = params.penalty_window;
  path = path.last(std::min(window, path.size()));
  const std::size_t before = std::min(window - path.size(), history.recent_tokens());
  const auto for_each = [&](const auto& take) {
    for (std::size_t i = 0; i < before; ++i) take(history.Recent(i), history.IsOutput(i));
    for (const Token token : path) take(token, true);
  };
  for_each([&](Token token, bool output) { path_counts_[token] += output ? 1 : 0; });
  for_each([&](Token token, bool) {
    std::int32_t& count = path_counts_[token];
    if (count == kPenalized) return;
    processed_[token] = Penalize(processed_[token], params, count);
    count = kPenalized;
  });
  for_each([&](Token token, bool) { path_counts_[token] = 0; });
}

}  // namespace foretoken
