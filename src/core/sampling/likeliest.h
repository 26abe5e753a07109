#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "foretoken/types.h"

namespace foretoken {

/// A token and its probability.
struct TokenProbability {
  Token token = -1;
  float probability = 0;
};

/// Finds the likeliest tokens of a distribution. Holds scratch memory only.
class LikeliestSelection {
 public:
  /// The `most` likeliest tokens of `probabilities` [vocabulary], fewer where fewer are above 0, in
  /// descending order (ties: lower ids first), normalised to sum to 1. Valid until the next call;
  /// allocates at the first call with a vocabulary of this size.
  std::span<TokenProbability> Select(std::span<const float> probabilities, int most);

 private:
  // By exponent and four bits of the fraction: positive floats compare as their bits do.
  static constexpr int kShift = 19;
  static constexpr int kBuckets = (0x3F800000 >> kShift) + 2;  // Up to 1, and a little beyond.

  static int BucketOf(float probability);
  /// Places the tokens of the fewest highest buckets that have `most`, in order of buckets.
  /// Returns the lowest of these buckets.
  int Place(std::span<const float> probabilities, int most);

  // How many tokens each bucket has; then, where it is placed, its end in `tokens_`.
  std::array<std::int32_t, kBuckets> ends_;
  std::vector<TokenProbability> tokens_;
};

}  // namespace foretoken
