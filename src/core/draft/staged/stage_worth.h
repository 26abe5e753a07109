#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/prediction/estimates.h"

namespace foretoken {

/// How many tokens a stage is worth being asked for, of which a right one saves the stage above a
/// pass. The k-th is right with probability alpha^k, alpha being the share of its tokens that came
/// true once verification came to them; it costs a row of that pass, and the time of drafting it.
/// What is drafted does not depend on it, only how fast. Over all sequences.
class StageWorth {
 public:
  /// `token_passes`: what a guess costs, in passes of the stage above; measured where it is not
  /// given.
  explicit StageWorth(std::optional<double> token_passes = std::nullopt)
      : token_passes_(token_passes) {}

  /// Tokens to ask for, `most` at most: as many as are worth it. Where none is, a few now and then,
  /// to see whether they would by now.
  int Ask(int most) {
    if (most <= 0) return 0;
    int length = 0;
    double right = 1;
    while (length < most) {
      right *= alpha_.value();
      if (right <= Cost()) break;
      ++length;
    }
    if (length > 0) return length;
    if (++rounds_without_ < kRoundsBetween) return 0;
    rounds_without_ = 0;
    return std::min(most, kTried);
  }

  /// Asking took so long for `tokens` in all.
  void ObserveAsking(int tokens, std::int64_t ns) {
    token_ns_.Decay(kKeepTime);
    token_ns_.Add(static_cast<double>(ns) / std::max(1, tokens));
  }
  /// A pass of the stage above for so many sequences, over so many rows: one of each sequence, and
  /// those of guesses.
  void ObservePass(int sequences, int rows, std::int64_t ns) {
    const double each = static_cast<double>(ns) / std::max(1, sequences);
    if (rows <= sequences) {
      pass_ns_.Decay(kKeepTime);
      pass_ns_.Add(each);
    } else if (pass_ns_.weight > 0) {
      row_.Decay(kKeepTime);
      row_.Add((each / PassNs() - 1) * sequences / (rows - sequences));
    }
  }
  /// In an answer `right` tokens came true, and perhaps another one did not (`wrong`).
  void ObserveAnswer(int right, bool wrong) {
    alpha_.Decay(kKeep);
    alpha_.Add(right > 0 || wrong ? static_cast<double>(right) / (right + (wrong ? 1 : 0)) : 0,
               right + (wrong ? 1 : 0));
  }

 private:
  static constexpr double kKeep = 0.98;
  static constexpr double kKeepTime = 0.95;
  static constexpr int kRoundsBetween = 24;
  static constexpr int kTried = 2;
  double Cost() const {
    if (token_passes_.has_value()) return *token_passes_;
    const double row = std::clamp(row_.value(), 0.0, 1.0);
    if (pass_ns_.weight == 0 || token_ns_.weight == 0) return row;
    return row + token_ns_.sum / token_ns_.weight / PassNs();
  }
  double PassNs() const { return std::max(1.0, pass_ns_.sum / pass_ns_.weight); }

  std::optional<double> token_passes_;
  DecayingMean alpha_{0.6, 4};
  DecayingSum token_ns_;
  DecayingSum pass_ns_;       // The time of passes without guesses.
  DecayingMean row_{0.1, 1};  // What a guess's row adds to one, as a share of it.
  int rounds_without_ = 0;
};

}  // namespace foretoken
