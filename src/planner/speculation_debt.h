#pragma once

namespace foretoken {

/// What speculation has lost against plain decoding: only time and success pay it off, and beyond a
/// limit nothing may be tried until there is room for another attempt. A little of what speculation
/// has gained is kept as well, against bad luck. All times in microseconds.
class SpeculationDebt {
 public:
  /// A round that speculates took so much longer (below 0: less) than plain decoding would have for
  /// its tokens, whose rounds take `plain_round_us`.
  void Add(double lost_us, double plain_round_us);
  /// After so much decoding in all, whatever the last round was.
  void Judge(double now_us, double plain_round_us);

  bool exceeded() const { return exceeded_; }

 private:
  double debt_us_ = 0;
  bool exceeded_ = false;
};

}  // namespace foretoken
