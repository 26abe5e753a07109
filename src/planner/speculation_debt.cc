#include "planner/speculation_debt.h"

#include <algorithm>

namespace foretoken {
namespace {

// The debt that choosing modes may run up: this share of the time, and a few plain rounds to begin
// with.
constexpr double kExploringShare = 0.005;
constexpr double kExploringRounds = 8;
// What is kept of gains: text that is harder for a while must not end what pays. (Without it 10 %
// of runs of 2,000 rounds at T = 0.7 came to their limit, where speculation is 1.25 times as fast.)
constexpr double kCreditRounds = 64;
// How far below its limit a debt must be before anything is tried again: in the first rounds after
// a change of mode, in which the draft reads the context, two or three plain ones are lost.
// (Without it one of those runs tried 11 times in vain and decoded plainly to its end.)
constexpr double kAttemptRounds = 3;

}  // namespace

void SpeculationDebt::Add(double lost_us, double plain_round_us) {
  debt_us_ = std::max(debt_us_ + lost_us, -kCreditRounds * plain_round_us);
}

void SpeculationDebt::Judge(double now_us, double plain_round_us) {
  const double limit = kExploringShare * now_us + kExploringRounds * plain_round_us;
  const double room = exceeded_ ? kAttemptRounds * plain_round_us : 0;
  exceeded_ = debt_us_ > limit - room;
}

}  // namespace foretoken
