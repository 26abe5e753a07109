#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace foretoken {

/// How often what a drafter proposed came true: at each depth, of all nodes to which the text came,
/// which of their children was the text's next token. What was seen long ago decays.
class PathRecord {
 public:
  static constexpr int kDepths = 8;  ///< Deeper ones count as the last.
  /// Ranks of siblings in their order; later ones count as the last.
  static constexpr int kRanks = 4;

  /// At `depth` = 1, 2 ... the text came to a node with so many children: of these, number `right`
  /// = 0, 1 ... was right, or none (-1).
  void Add(int depth, int children, int right) {
    constexpr double kKeep = 0.99;
    Level& level = levels_[LevelOf(depth)];
    for (double& seen : level.seen) seen *= kKeep;
    for (double& hits : level.hits) hits *= kKeep;
    for (int rank = 0; rank < std::min(children, kRanks); ++rank) level.seen[rank] += 1;
    if (right >= 0) level.hits[std::min(right, kRanks - 1)] += 1;
  }

  /// P(child number `rank` of a node at `depth` - 1 comes next | the text came to that node), where
  /// `prior` counts for as much as `prior_seen` such nodes.
  double Chance(int depth, int rank, double prior, double prior_seen) const {
    const Level& level = levels_[LevelOf(depth)];
    const int at = std::min(rank, kRanks - 1);
    return (prior_seen * prior + level.hits[at]) / (prior_seen + level.seen[at]);
  }

 private:
  struct Level {
    std::array<double, kRanks> seen{};
    std::array<double, kRanks> hits{};
  };
  static std::size_t LevelOf(int depth) { return std::clamp(depth, 1, kDepths) - 1; }

  std::array<Level, kDepths> levels_{};
};

/// What the records of a drafter, over all sequences and of one of them, make of its next proposal
/// for that sequence.
class PathChances {
 public:
  /// `usual`: how often the first child of a node is right, as far as one knows before any was
  /// seen. A depth that is rarely reached leans on the one before it, a sequence on the others.
  PathChances(const PathRecord& all, const PathRecord& own, double usual) {
    constexpr double kPriorSeen = 8;
    constexpr double kOfOthers = 16;
    constexpr double kNextSibling = 0.25;
    double prior = usual;
    for (int rank = 0; rank < PathRecord::kRanks; ++rank, prior *= kNextSibling) {
      double of_all = prior;
      for (int depth = 1; depth <= PathRecord::kDepths; ++depth) {
        of_all = all.Chance(depth, rank, of_all, kPriorSeen);
        chances_[depth - 1][rank] = own.Chance(depth, rank, of_all, kOfOthers);
      }
    }
  }

  /// As PathRecord::Chance.
  double At(int depth, int rank) const {
    return chances_[std::clamp(depth, 1, PathRecord::kDepths) - 1]
                   [std::min(rank, PathRecord::kRanks - 1)];
  }

  /// How many levels are worth being proposed, `most` at most: those which the text comes to by a
  /// node's first children, of `first` at each, with a chance of `least` or more.
  int Levels(int first, int most, double least) const {
    double reached = 1;
    for (int depth = 1; depth <= most; ++depth) {
      double any = 0;
      for (int rank = 0; rank < std::min(first, PathRecord::kRanks); ++rank) any += At(depth, rank);
      reached *= std::min(any, 1.0);
      if (reached < least) return depth - 1;
    }
    return most;
  }

 private:
  std::array<std::array<double, PathRecord::kRanks>, PathRecord::kDepths> chances_{};
};

}  // namespace foretoken
