#pragma once

#include <cstdint>

#include "foretoken/sampling.h"

namespace foretoken {

/// What of SamplingParams crosses the channel as it is: its numbers, without which drafts would get
/// worse silently. Biases and the constraint have records of their own, and who is told of
/// probabilities is not the speculator's business.
struct SamplingNumbers {
#define FORETOKEN_SAMPLING_FIELD(type, name, ...) type name;
#include "foretoken/sampling_fields.inc"
#undef FORETOKEN_SAMPLING_FIELD
  std::uint64_t seed;
};

inline SamplingNumbers ToNumbers(const SamplingParams& sampling) {
  return {
#define FORETOKEN_SAMPLING_FIELD(type, name, ...) .name = sampling.name,
#include "foretoken/sampling_fields.inc"
#undef FORETOKEN_SAMPLING_FIELD
      .seed = sampling.seed};
}

inline SamplingParams FromNumbers(const SamplingNumbers& numbers) {
  return {
#define FORETOKEN_SAMPLING_FIELD(type, name, ...) .name = numbers.name,
#include "foretoken/sampling_fields.inc"
#undef FORETOKEN_SAMPLING_FIELD
      .seed = numbers.seed};
}

}  // namespace foretoken
