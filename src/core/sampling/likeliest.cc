#include "core/sampling/likeliest.h"

#include <algorithm>
#include <bit>

#include "base/numbers/integers.h"

namespace foretoken {

int LikeliestSelection::BucketOf(float probability) {
  return std::min(std::bit_cast<std::int32_t>(probability) >> kShift, kBuckets - 1);
}

int LikeliestSelection::Place(std::span<const float> probabilities, int most) {
  ends_.fill(0);
  int possible = 0;
  for (const float probability : probabilities) {
    const int counts = probability > 0 ? 1 : 0;
    ends_[BucketOf(probability)] += counts;
    possible += counts;
  }
  int placed = 0;
  int lowest = kBuckets;
  while (placed < std::min(most, possible)) {
    --lowest;
    const int count = ends_[lowest];
    ends_[lowest] = placed;
    placed += count;
  }
  tokens_.reserve(probabilities.size());
  tokens_.resize(placed);
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const int bucket = BucketOf(probabilities[i]);
    if (bucket >= lowest && probabilities[i] > 0) {
      tokens_[ends_[bucket]++] = {static_cast<Token>(i), probabilities[i]};
    }
  }
  return lowest;
}

// (Partitioning and sorting all tokens by comparison takes 36 us for 256 of 2,048, this 11: most
// were mispredicted branches.)
std::span<TokenProbability> LikeliestSelection::Select(std::span<const float> probabilities,
                                                       int most) {
  const int lowest = Place(probabilities, most);
  const auto likelier = [](const TokenProbability& a, const TokenProbability& b) {
    return a.probability > b.probability || (a.probability == b.probability && a.token < b.token);
  };
  const int kept = std::min(most, Int(tokens_.size()));
  const auto tokens = tokens_.begin();
  int begin = 0;
  for (int bucket = kBuckets - 1; bucket >= lowest; --bucket) {
    const int end = ends_[bucket];
    if (end > kept) std::nth_element(tokens + begin, tokens + kept, tokens + end, likelier);
    std::sort(tokens + begin, tokens + std::min(end, kept), likelier);
    begin = end;
  }
  tokens_.resize(kept);
  double sum = 0;
  for (const TokenProbability& entry : tokens_) sum += entry.probability;
  const double scale = 1 / sum;
  for (TokenProbability& entry : tokens_) {
    entry.probability = static_cast<float>(entry.probability * scale);
  }
  return tokens_;
}

}  // namespace foretoken
