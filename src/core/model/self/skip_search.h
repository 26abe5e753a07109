#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/model/config/sublayers.h"

namespace foretoken {

/// How many times as fast as alone a model is to be expected with a draft whose tokens it accepts
/// with probability `agreement` each and of which a pass costs `cost` of its own, with the best
/// number of drafted tokens from 1 to 16: (1 - a^(g+1)) / ((1 - a)(g c + 1)), Theorem 3.8 of
/// Leviathan et al. (arXiv 2211.17192). Both in [0, 1].
double PredictedSpeedup(double agreement, double cost);

/// A set that was compared.
struct ComparedSet {
  SkippedSublayers skipped{0};
  double agreement = 0;
  double cost = 0;
  double speedup = 0;
};

/// Looks for the sub-layers to leave out so that what is left drafts best (Draft & Verify, arXiv
/// 2309.08168; SWIFT, 2410.06916), as SWIFT does never of the first and of the last layer. A third
/// of `budget` sets are drawn at random, with `ratio` of all sub-layers each; every later one is
/// the best so far with one changed: two sub-layers that change places, one more left out, or one
/// less. No set is named twice. The same seed names the same sets for the same answers.
class SkipSearch {
 public:
  /// Refuses models that have nothing between the first and the last layer. Keeps the config.
  static Result<SkipSearch> Begin(ModelConfig model, double ratio, int budget, std::uint64_t seed);

  /// The next set; none when so many were named, or no other is found.
  std::optional<SkippedSublayers> Next();
  /// Takes what came of it.
  void Tell(ComparedSet set);

  int compared() const { return compared_; }
  /// By speedup; none before the first.
  const std::optional<ComparedSet>& best() const { return best_; }

 private:
  SkipSearch(ModelConfig model, double ratio, int budget, std::uint64_t seed);

  // Sub-layers by number: layer * 2, and one more for the MLP.
  std::vector<bool>::reference At(int sublayer, SkippedSublayers* set) const;
  bool Has(int sublayer, const SkippedSublayers& set) const;
  int Pick(int count);
  // One of those that may be left out which `set` has left out, or has not; -1 where there is none.
  int PickOf(const SkippedSublayers& set, bool skipped);
  SkippedSublayers Random();
  SkippedSublayers Changed(SkippedSublayers set);

  ModelConfig model_;
  std::vector<int> allowed_;
  int wanted_;  // Sub-layers of a random set.
  int budget_;
  std::mt19937_64 random_;
  std::set<std::string> named_;
  int compared_ = 0;
  std::optional<ComparedSet> best_;
};

}  // namespace foretoken
