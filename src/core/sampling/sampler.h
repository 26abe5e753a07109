#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/backend.h"
#include "core/sampling/filter.h"
#include "core/sampling/history.h"
#include "core/sampling/likeliest.h"
#include "foretoken/sampling.h"
#include "foretoken/types.h"

namespace foretoken {

/// Chooses tokens by shared noise (docs/understand/verification.md): x_t = argmax_i(z_i / T + g_i),
/// where z are the logits after every sampler option on the emitted prefix. Holds scratch memory
/// only, so what it returns is a function of its arguments; one per thread.
class Sampler {
 public:
  Sampler(Backend* backend, int vocabulary);

  /// The token at `position`; -1 where every logit is -inf or NaN (NaN counts as -inf). Its score
  /// is infinite where a logit is. `path` are tokens after the history (a draft branch) that
  /// penalties and the constraint must count as output. A history for penalties with a window keeps
  /// as many tokens. `logits` [vocabulary] are not changed.
  Candidate Choose(Logits logits, const SamplingParams& params, const TokenHistory& history,
                   std::span<const Token> path, std::uint64_t position);

  /// The best.size() tokens of highest noisy score, descending; returns how many there are.
  std::size_t Rank(Logits logits, const SamplingParams& params, const TokenHistory& history,
                   std::span<const Token> path, std::uint64_t position, std::span<Candidate> best);

  /// p = softmax(z / T), T > 0, of the processed logits: [vocabulary] floats that the caller may
  /// change, valid until the next call. All 0 where no logit is finite.
  std::span<float> Probabilities(const float* logits, const SamplingParams& params,
                                 const TokenHistory& history, std::span<const Token> path);

  /// The likeliest of the same tokens, `most` of them at most and none of probability 0, in
  /// descending order (ties: lower ids first); their probabilities are normalised to sum to 1.
  /// Valid until the next call.
  std::span<TokenProbability> LikeliestTokens(const float* logits, const SamplingParams& params,
                                              const TokenHistory& history,
                                              std::span<const Token> path, int most);

  /// Draws from weights [vocabulary] by the noise of `position`: argmax_i(log w_i + g_i); -1 where
  /// none is positive, below 2^-126 counting as 0. Overwrites the weights.
  Token ChooseByWeight(std::span<float> weights, std::uint64_t seed, std::uint64_t position);

 private:
  /// Returns logits after penalties, bias, constraint and filters (what is left out is -inf);
  /// `logits` itself where no option is set.
  Logits Process(Logits logits, const SamplingParams& params, const TokenHistory& history,
                 std::span<const Token> path);
  void ApplyPenalties(const SamplingParams& params, const TokenHistory& history,
                      std::span<const Token> path);
  void PenalizeRecent(const SamplingParams& params, const TokenHistory& history,
                      std::span<const Token> path);

  Backend* backend_;
  int vocabulary_;
  std::vector<float> processed_;
  std::vector<std::int32_t> path_counts_;  // All 0 between calls.
  LogitFilter filter_;
  // The latest distribution that was asked for; empty until one is.
  std::vector<float> probabilities_;
  LikeliestSelection likeliest_;
};

}  // namespace foretoken
