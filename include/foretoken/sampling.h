#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "foretoken/result.h"
#include "foretoken/types.h"

namespace foretoken {

class TokenConstraint;

inline constexpr int kMaxTopLogprobs = 100;

/// Every option that shapes the distribution of the next token. The defaults are greedy.
/// Order of application: repetition penalty (positive logits divided, negative multiplied),
/// frequency and presence penalty, logit bias, constraint; then, on the probabilities at the
/// temperature, top-k, top-p over what top-k keeps, and min-p.
struct SamplingParams {
  float temperature = 0.0F;  ///< 0 is greedy.
  int top_k = 0;             ///< Keep the k most likely tokens; 0 keeps all.
  float top_p = 1.0F;        ///< Keep the smallest set with this much probability.
  float min_p = 0.0F;        ///< Keep tokens at least this likely relative to the most likely.
  float repetition_penalty = 1.0F;  ///< Over prompt and output; > 1 discourages.
  float frequency_penalty = 0.0F;   ///< Per occurrence in the output.
  float presence_penalty = 0.0F;    ///< Once for any occurrence in the output.
  int penalty_window = -1;          ///< Penalties look at so many of the latest tokens; -1: at all.
  std::vector<std::pair<Token, float>> logit_bias;
  /// What the output must match: tokens that do not fit are left out. May be null; used by one
  /// engine (TokenConstraint).
  std::shared_ptr<TokenConstraint> constraint;
  std::uint64_t seed = 0;
  int top_logprobs = -1;  ///< -1: none; 0: of the chosen token; n: and of the n most likely.

  bool has_penalties() const {
    return penalty_window != 0 &&
           (repetition_penalty != 1.0F || frequency_penalty != 0.0F || presence_penalty != 0.0F);
  }
  bool has_filters() const { return top_k > 0 || top_p < 1.0F || min_p > 0.0F; }
};

/// A token and its natural-log probability.
struct TokenLogprob {
  Token token = -1;
  float logprob = 0;
};

/// Refuses values outside their ranges with one sentence that names the option.
Status ValidateSamplingParams(const SamplingParams& params, int vocabulary);

}  // namespace foretoken
