#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/static_vector.h"
#include "draft/retrieval/candidate_fusion.h"
#include "foretoken/types.h"
#include "speculation/proposal.h"

namespace foretoken {

/// How often candidates of a pseudo-probability came true, apart for each kind of source. What was
/// seen long ago fades; where little was seen the pseudo-probability itself is believed.
class TrackRecord {
 public:
  static constexpr int kKinds = 5;  ///< The datastore, and matches of 1 to 4 tokens in the input.

  /// The chance that such a candidate, and all above it, come true.
  double Chance(CandidateScore score) const;
  void Add(CandidateScore score, bool came_true);

  /// Keeps as many of the first candidates of `proposal` as gain the most: the sum of their chances
  /// less that of their rows' prices, which may come in steps. Those are left out whose chance is
  /// below every price, that are deeper than `max_depth` or below others left out, and what is
  /// beyond `max_nodes`. `scores` are the candidates'; `prices` those of the first row, the second
  /// and so on, the last also of all further ones.
  void KeepWorthwhile(std::span<const CandidateScore> scores, std::span<const double> prices,
                      int max_depth, int max_nodes, Proposal* proposal) const;

 private:
  static constexpr int kBins = 14;  // Each half as wide as the one before it: 1 to 0.7, to 0.5 ...
  struct Tally {
    double seen = 0;
    double came_true = 0;
  };
  static std::size_t BinOf(CandidateScore score);

  std::array<Tally, static_cast<std::size_t>(kKinds* kBins)> tallies_{};
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
  std::size_t depth_ = 0;  // Of the deepest candidate.
  Proposal proposal_;
  StaticVector<CandidateScore, kMaxProposal> scores_;
};

}  // namespace foretoken
