#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "base/static_vector.h"
#include "core/draft/retrieval/candidate_fusion.h"
#include "core/speculation/proposal.h"
#include "foretoken/types.h"

namespace foretoken {

/// How often what had a score came true, apart for each of `kKinds` and, of each, for `kBins` of
/// scores: 1 to 0.7, to 0.5 ... What was seen long ago decays.
template <int kKinds, int kBins>
class ScoreTallies {
 public:
  /// The chance that such a one comes true, where `prior` counts for as much as `prior_seen` of
  /// them.
  double Chance(int kind, double score, double prior, double prior_seen) const {
    const Tally& tally = tallies_[BinOf(kind, score)];
    return (prior_seen * prior + tally.came_true) / (prior_seen + tally.seen);
  }
  void Add(int kind, double score, bool came_true) {
    constexpr double kKeep = 0.998;
    Tally& tally = tallies_[BinOf(kind, score)];
    tally.seen = kKeep * tally.seen + 1;
    tally.came_true = kKeep * tally.came_true + (came_true ? 1 : 0);
  }

 private:
  struct Tally {
    double seen = 0;
    double came_true = 0;
  };
  static std::size_t BinOf(int kind, double score) {
    FT_CHECK(kind >= 0 && kind < kKinds, "kind {}", kind);
    const double halvings = -2 * std::log2(std::clamp(score, 1e-9, 1.0));
    return kind * kBins + std::min(static_cast<int>(halvings), kBins - 1);
  }

  std::array<Tally, Size(kKinds* kBins)> tallies_{};
};

/// How often candidates of a pseudo-probability came true, apart for each kind of source. Where
/// little was seen the pseudo-probability itself is believed.
class TrackRecord {
 public:
  /// The chance that such a candidate, and all above it, come true.
  double Chance(CandidateScore score) const {
    constexpr double kPriorSeen = 8;
    return tallies_.Chance(score.kind, score.probability, score.probability, kPriorSeen);
  }
  void Add(CandidateScore score, bool came_true) {
    tallies_.Add(score.kind, score.probability, came_true);
  }

  /// Keeps as many of the first candidates of `proposal` as gain the most: the sum of their chances
  /// less that of their rows' prices, which may come in steps. Those are left out whose chance is
  /// below every price, that are deeper than `max_depth` or below others left out, and what is
  /// beyond `max_nodes`. `scores` are the candidates'; `prices` those of the first row, the second
  /// and so on, the last also of all further ones.
  void KeepWorthwhile(std::span<const CandidateScore> scores, std::span<const double> prices,
                      int max_depth, int max_nodes, Proposal* proposal) const;

 private:
  // The datastore, and matches of 1 to 4 tokens in the input.
  ScoreTallies<5, 14> tallies_;
};

/// What retrieval expected at one place of a sequence, kept until the text has gone on so far that
/// all of it has come true or not. Rows need not be spent to learn from a candidate.
class Forecast {
 public:
  bool pending() const { return !scores_.empty(); }
  /// Remembers candidates for what follows the first `position` tokens.
  void Make(std::size_t position, const Proposal& proposal, std::span<const CandidateScore> scores);
  /// Enters into `record` how the candidates did, once `tokens` reach beyond the deepest.
  void Settle(std::span<const Token> tokens, TrackRecord* record);
  void Clear() { scores_.clear(); }

 private:
  std::size_t position_ = 0;
  std::size_t depth_ = 0;  // The depth of the deepest candidate.
  Proposal proposal_;
  StaticVector<CandidateScore, kMaxProposal> scores_;
};

}  // namespace foretoken
