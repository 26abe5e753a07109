#pragma once

#include "core/prediction/estimates.h"

namespace foretoken {

/// Whether it pays to ask retrieval, which takes its time on the target's device: what its answers
/// were worth in tokens, against the tokens that are decoded in the time of asking. One for each
/// use that is made of it, over all sequences.
class RetrievalWorth {
 public:
  /// `prior`: tokens that an answer is taken to be worth until some dozens are known.
  explicit RetrievalWorth(double prior) : answer_tokens_(prior, kPriorAnswers) {}

  /// Whether to ask in the round that begins. Now and then also where it did not pay, to see
  /// whether it would by now.
  bool AskNow() {
    if (!Pays() && ++rounds_without_ < kRoundsBetween) return false;
    rounds_without_ = 0;
    return true;
  }

  /// Asking for one sequence took that long.
  void ObserveAsking(double us) {
    asking_us_.Decay(kKeep);
    asking_us_.Add(us);
  }
  /// What came of it, in tokens that there would not have been without.
  void ObserveAnswer(double tokens) {
    answer_tokens_.Decay(kKeep);
    answer_tokens_.Add(tokens);
  }
  /// Any round: what all sequences emitted in what time.
  void ObserveRound(int sequences, double tokens, double us) {
    rounds_ = kKeepRound * rounds_ + sequences;
    tokens_ = kKeepRound * tokens_ + tokens;
    us_ = kKeepRound * us_ + us;
  }

  /// Tokens of a sequence and round.
  double tokens_per_round() const { return rounds_ == 0 ? 1 : tokens_ / rounds_; }

 private:
  // The last few hundred rounds of single sequences count (kKeep), and the last hundred rounds of
  // all (kKeepRound).
  static constexpr double kKeep = 0.997;
  static constexpr double kKeepRound = 0.99;
  static constexpr double kPriorAnswers = 48;
  // Where asking does not pay it is done in one round of so many.
  static constexpr int kRoundsBetween = 24;

  bool Pays() const {
    if (asking_us_.weight == 0 || us_ == 0) return true;
    return answer_tokens_.value() >= asking_us_.sum / asking_us_.weight * (tokens_ / us_);
  }

  DecayingSum asking_us_;
  DecayingMean answer_tokens_;
  // Decaying sums.
  double rounds_ = 0;  // Rounds of single sequences.
  double tokens_ = 0;
  double us_ = 0;
  int rounds_without_ = 0;
};

}  // namespace foretoken
