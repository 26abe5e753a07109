#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "foretoken/sampling.h"
#include "foretoken/types.h"
#include "grammar/token_constraint.h"
#include "sampling/filter.h"
#include "sampling/likeliest.h"

namespace foretoken {

/// What the sampler must know of a sequence's prefix: the tokens that penalties look at, as counts,
/// and where the output stands in its constraint. Grows with the emitted prefix only.
class TokenHistory {
 public:
  /// Allocates here only.
  explicit TokenHistory(int vocabulary);

  /// The output is to match `constraint`; before the first AddOutput. `drops_space` as in
  /// ConstraintCursor.
  void Constrain(std::shared_ptr<TokenConstraint> constraint, bool drops_space) {
    constraint_.emplace(std::move(constraint), drops_space);
  }

  void AddPrompt(std::span<const Token> tokens);
  void AddOutput(Token token);

  bool InPrompt(Token token) const { return prompt_[token] != 0; }
  int OutputCount(Token token) const { return output_[token]; }
  /// nullptr where there is none.
  const ConstraintCursor* constraint() const {
    return constraint_.has_value() ? &*constraint_ : nullptr;
  }
  /// Distinct tokens seen, in first-seen order: penalties touch these and no others.
  std::span<const Token> seen() const { return seen_; }

 private:
  void See(Token token);
  std::vector<std::uint8_t> prompt_;
  std::vector<std::int32_t> output_;
  std::vector<Token> seen_;
  std::optional<ConstraintCursor> constraint_;
};

/// Chooses tokens by the rule of design.md 1.1: x_t = argmax_i(z_i / T + g_i), where z are the
/// logits after every sampler option on the emitted prefix. Holds scratch memory only, so what it
/// returns is a function of its arguments; one per thread.
class Sampler {
 public:
  Sampler(Backend* backend, int vocabulary);

  /// The token at `position`; -1 where every logit is -inf or NaN (NaN counts as -inf). `path` are
  /// tokens after the history (a draft branch) that penalties and the constraint must count as
  /// output. `logits`
  /// [vocabulary] are not changed.
  Candidate Choose(Logits logits, const SamplingParams& params, const TokenHistory& history,
                   std::span<const Token> path, std::uint64_t position);

  /// The best.size() tokens of highest noisy score, descending; returns how many there are.
  std::size_t Rank(Logits logits, const SamplingParams& params, const TokenHistory& history,
                   std::span<const Token> path, std::uint64_t position, std::span<Candidate> best);

  /// p = softmax(z / T), T > 0, of the processed logits: [vocabulary] floats that the caller may
  /// change, valid until the next call. All 0 where no logit is finite.
  std::span<float> Law(const float* logits, const SamplingParams& params,
                       const TokenHistory& history, std::span<const Token> path);

  /// The same law's likeliest tokens, `most` of them at most and none of probability 0, in
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

  Backend* backend_;
  int vocabulary_;
  std::vector<float> processed_;
  std::vector<std::int32_t> path_counts_;  // All 0 between calls.
  LogitFilter filter_;
  std::vector<float> law_;  // Of Law and LikeliestTokens: empty until asked.
  LikeliestSelection likeliest_;
};

/// Log-softmax of the raw logits at `chosen`, then of the `top` most likely tokens (descending,
/// ties by lower id; tokens of logit -inf or NaN are left out).
void ComputeLogprobs(const float* logits, int vocabulary, Token chosen, int top,
                     std::vector<TokenLogprob>* out);

}  // namespace foretoken
