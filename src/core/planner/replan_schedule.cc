#include "core/planner/replan_schedule.h"

#include <algorithm>
#include <bit>

namespace foretoken {
namespace {

// Planning may take this share of the time. After a change of mode, and at the first sequences'
// begin, there are replans within the first kEarlyRounds: a wrong mode costs more than they do.
constexpr double kPlanningShare = 0.0025;
constexpr int kEarlyRounds = 128;
constexpr std::int64_t kEnoughReplans = 16;

}  // namespace

int BatchLevel(const Workload& load) {
  const int level = std::bit_width(static_cast<unsigned>(load.batch - 1));
  return std::min(level, kBatchLevels - 1);
}

bool ReplanSchedule::Due(const SpeculationPlan& current, const std::optional<SpeculationPlan>& last,
                         const Workload& load, const SequenceEstimate& sequence) {
  if (const int level = BatchLevel(load); level != level_) {
    level_ = level;
    level_us_ = now_us_;
  }
  if (now_us_ >= next_replan_us_) due_us_ = now_us_;
  if (now_us_ == due_us_ || (now_us_ == level_us_ && last != current)) return true;
  const auto rounds = static_cast<unsigned>(sequence.rounds);
  return rounds >= 4 && rounds <= kEarlyRounds && std::has_single_bit(rounds);
}

void ReplanSchedule::Took(double us) {
  ++replans_;
  us_ += us;
  if (now_us_ == due_us_ || now_us_ == level_us_) {
    next_replan_us_ = std::max(now_us_, next_replan_us_) + us / kPlanningShare;
  }
}

void ReplanSchedule::Begin(SequenceEstimate* sequence) const {
  if (replans_ >= kEnoughReplans) sequence->rounds = kEarlyRounds;
}

}  // namespace foretoken
