#pragma once

#include <cstdint>

#include "foretoken/sampling.h"

namespace foretoken {

/// What of SamplingParams crosses the channel as it is; biases and the constraint have records of
/// their own, and who is told of probabilities is not the speculator's business.
struct SamplingNumbers {
  float temperature;
  int top_k;
  float top_p;
  float min_p;
  float repetition_penalty;
  float frequency_penalty;
  float presence_penalty;
  int penalty_window;
  std::uint64_t seed;
};

/// An option that is added to SamplingParams does not compile here before it is decided how it
/// crosses: drafts would get worse silently.
inline SamplingNumbers ToNumbers(const SamplingParams& sampling) {
  const auto& [temperature, top_k, top_p, min_p, repetition, frequency, presence, window, bias,
               constraint, seed, top_logprobs] = sampling;
  return {temperature, top_k, top_p, min_p, repetition, frequency, presence, window, seed};
}
inline SamplingParams FromNumbers(const SamplingNumbers& numbers) {
  const auto& [temperature, top_k, top_p, min_p, repetition, frequency, presence, window, seed] =
      numbers;
  return {temperature, top_k,  top_p, min_p, repetition, frequency,
          presence,    window, {},    {},    seed,       -1};
}

}  // namespace foretoken
