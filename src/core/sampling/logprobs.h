#pragma once

#include <vector>

#include "foretoken/sampling.h"
#include "foretoken/types.h"

namespace foretoken {

/// Log-softmax of the raw logits at `chosen`, then of the `top` most likely tokens (descending,
/// ties by lower id; tokens of logit -inf or NaN are left out). False where the largest logit is
/// not a finite number: there are no probabilities then.
bool ComputeLogprobs(const float* logits, int vocabulary, Token chosen, int top,
                     std::vector<TokenLogprob>* out);

}  // namespace foretoken
