#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/numbers/integers.h"

namespace foretoken {

/// What may tell how sure a node of a merged tree is: who proposed it, and where it stands.
struct Agreement {
  std::uint8_t members = 0;  ///< A bit for each that proposed it (AgreementRecord::Bit).
  std::int8_t depth = 1;
  std::int8_t rank = 0;  ///< Among the siblings of whoever ranks it first.
};

/// How often nodes on which the same members of an ensemble agreed came true, given that their
/// parents did. Members that follow the same text are right and wrong together, so what agreement
/// is worth must be seen: three that copy one place are no surer than one. What was seen long ago
/// decays.
class AgreementRecord {
 public:
  static constexpr int kMembers = 6;  ///< Further ones count as the last.
  static constexpr int kDepths = 4;   ///< 1, 2, 3 to 4, and deeper.
  static constexpr int kRanks = 3;    ///< Later siblings count as the last.

  static std::uint8_t Bit(std::size_t member) {
    return static_cast<std::uint8_t>(1U << std::min<std::size_t>(member, kMembers - 1));
  }

  void Add(const Agreement& agreement, bool right) {
    constexpr float kKeep = 0.99F;
    Seen& seen = seen_[IndexOf(agreement)];
    seen.nodes = kKeep * seen.nodes + 1;
    seen.right = kKeep * seen.right + (right ? 1 : 0);
  }

  /// P(such a node comes true), where `prior` counts for as much as `prior_seen` of them.
  double Chance(const Agreement& agreement, double prior, double prior_seen) const {
    const Seen& seen = seen_[IndexOf(agreement)];
    return (prior_seen * prior + seen.right) / (prior_seen + seen.nodes);
  }

 private:
  struct Seen {
    float nodes = 0;
    float right = 0;
  };
  static constexpr std::size_t kSets = std::size_t{1} << kMembers;

  static std::size_t IndexOf(const Agreement& agreement) {
    const int depth = agreement.depth <= 2 ? agreement.depth - 1 : agreement.depth <= 4 ? 2 : 3;
    const int rank = std::min<int>(agreement.rank, kRanks - 1);
    return Size(depth * kRanks + rank) * kSets + agreement.members;
  }

  std::array<Seen, std::size_t{kDepths} * kRanks * kSets> seen_{};
};

/// What the records of all sequences, and of one of them, make of its next nodes.
class AgreementChances {
 public:
  /// Borrows both.
  AgreementChances(const AgreementRecord& all, const AgreementRecord& own) : all_(all), own_(own) {}

  /// `prior`: as far as one knows before such nodes were seen. A sequence leans on the others.
  double Of(const Agreement& agreement, double prior) const {
    constexpr double kPriorSeen = 8;
    constexpr double kOfOthers = 16;
    return own_.Chance(agreement, all_.Chance(agreement, prior, kPriorSeen), kOfOthers);
  }

 private:
  const AgreementRecord& all_;
  const AgreementRecord& own_;
};

}  // namespace foretoken
