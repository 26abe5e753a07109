#pragma once

#include <algorithm>
#include <limits>

namespace foretoken {

/// The time that speculation may lose against plain decoding, and what it has spent of that. The
/// budget grows with time, and rounds that gain pay back; once it is exceeded nothing may be tried
/// until there is room for another attempt. A little of what speculation has gained is kept as
/// well, against bad luck. All times in microseconds.
class LossBudget {
 public:
  /// A round that speculates took so much longer (below 0: less) than plain decoding would have for
  /// its tokens, whose rounds take `plain_round_us`.
  void AddLoss(double lost_us, double plain_round_us) {
    spent_us_ = std::max(spent_us_ + lost_us, -kCreditRounds * plain_round_us);
  }
  /// After every round, whatever it was: `now_us` is the time of all decoding so far.
  void Update(double now_us, double plain_round_us) {
    const double limit = kExploringShare * now_us + kExploringRounds * plain_round_us;
    room_us_ = limit - spent_us_;
    exceeded_ = room_us_ < (exceeded_ ? kAttemptRounds * plain_round_us : 0);
  }

  bool exceeded() const { return exceeded_; }
  /// For an attempt at another mode, whose draft first reads the contexts for so long.
  bool HasRoomFor(double reading_us, double plain_round_us) const {
    return room_us_ >=
           std::min(reading_us, kReadingRounds * plain_round_us) + kAttemptRounds * plain_round_us;
  }

 private:
  // What choosing modes may lose: this share of the time, and a few plain rounds to begin with.
  static constexpr double kExploringShare = 0.005;
  static constexpr double kExploringRounds = 8;
  // What is kept of gains: text that is harder for a while must not end what pays. (Without it 10 %
  // of runs of 2,000 rounds at T = 0.7 came to their limit, where speculation is 1.25 times as
  // fast.)
  static constexpr double kCreditRounds = 64;
  // How much room there must be before anything is tried again: for a round or two that
  // accept nothing, and for what a draft reads first, or an attempt ends when it has paid for its
  // beginning. (With three rounds, of which reading 200 tokens took two to seven, three runs of 16
  // with two drafts loaded tried a dozen times in vain and decoded plainly to their end, where SSD
  // is 1.25 times as fast.) More than five rounds of reading need not fit: behind long contexts
  // nothing would be tried twice.
  static constexpr double kAttemptRounds = 2;
  static constexpr double kReadingRounds = 5;

  double spent_us_ = 0;  // Below 0: gained.
  double room_us_ = std::numeric_limits<double>::infinity();
  bool exceeded_ = false;
};

}  // namespace foretoken
