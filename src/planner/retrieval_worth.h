#pragma once

namespace foretoken {

/// Whether it pays to ask retrieval, which takes its time on the target's device: what its answers
/// were worth in tokens, against the tokens that are decoded in the time of asking. One for each
/// use that is made of it, over all sequences.
class RetrievalWorth {
 public:
  /// `prior`: tokens that an answer is taken to be worth until some dozens are known.
  explicit RetrievalWorth(double prior) : prior_(prior) {}

  /// Whether to ask in the round that begins. Now and then also where it did not pay, to see
  /// whether it would by now.
  bool AskNow();

  /// Asking for one sequence took that long.
  void ObserveAsking(double us);
  /// What came of it, in tokens that there would not have been without.
  void ObserveAnswer(double tokens);
  /// Any round: what all sequences emitted in what time.
  void ObserveRound(int sequences, double tokens, double us);

  /// Tokens of a sequence and round.
  double tokens_per_round() const { return rounds_ == 0 ? 1 : tokens_ / rounds_; }

 private:
  bool Pays() const;

  double prior_;
  // Faded sums.
  double asked_ = 0;
  double asking_us_ = 0;
  double answers_ = 0;
  double answer_tokens_ = 0;
  double rounds_ = 0;  // Of single sequences.
  double tokens_ = 0;
  double us_ = 0;
  int rounds_without_ = 0;
};

}  // namespace foretoken
