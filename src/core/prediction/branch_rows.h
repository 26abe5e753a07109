#pragma once

#include <cstddef>

/// How the speculator chooses the rows of a draft pass, for it and for what forecasts it.
namespace foretoken {

/// Rows of branches in one pass of this engine's speculator, over all sequences, at most.
inline constexpr int kBranchRowsPerPass = 32;

/// How much more a row counts that can turn a miss into a hit (the first of a branch, or one that
/// shows which branches to make): it spares the fallback's cost too.
inline constexpr double kHitValue = 2;

/// What is taken of candidates for a pass, and the time of the pass with them.
struct PassChoice {
  std::size_t count = 0;
  double us = 0;
};

/// The `count` candidates with the most value for their time; `value(i)` of a candidate in
/// descending order, `us(count)` of a pass with so many of them. Where they are worth the same, as
/// many as may be.
template <typename Value, typename Time>
PassChoice MostForItsTime(std::size_t candidates, const Value& value, const Time& us) {
  PassChoice best;
  double best_rate = 0;
  double sum = 0;
  for (std::size_t count = 1; count <= candidates; ++count) {
    sum += value(count - 1);
    const double time = us(count);
    if (sum < best_rate * time) continue;
    best_rate = time > 0 ? sum / time : sum;
    best = {.count = count, .us = time};
  }
  return best;
}

}  // namespace foretoken
