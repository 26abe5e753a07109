#pragma once

#include <cstdint>
#include <tuple>

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
  std::uint64_t seed;
};

/// Both as the same tuple of references. An option that is added to SamplingParams does not compile
/// here before it is decided how it crosses: drafts would get worse silently.
template <typename Params>
auto NumbersOf(Params& sampling) {
  auto& [temperature, top_k, top_p, min_p, repetition, frequency, presence, bias, constraint, seed,
         top_logprobs] = sampling;
  return std::tie(temperature, top_k, top_p, min_p, repetition, frequency, presence, seed);
}
inline auto TieNumbers(SamplingNumbers& numbers) {
  auto& [temperature, top_k, top_p, min_p, repetition, frequency, presence, seed] = numbers;
  return std::tie(temperature, top_k, top_p, min_p, repetition, frequency, presence, seed);
}

inline SamplingNumbers ToNumbers(const SamplingParams& sampling) {
  SamplingNumbers numbers;
  TieNumbers(numbers) = NumbersOf(sampling);
  return numbers;
}
inline SamplingParams FromNumbers(SamplingNumbers numbers) {
  SamplingParams sampling;
  NumbersOf(sampling) = TieNumbers(numbers);
  return sampling;
}

}  // namespace foretoken
