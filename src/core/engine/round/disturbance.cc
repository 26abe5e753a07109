#include "core/engine/round/disturbance.h"

#include <utility>

namespace foretoken {
namespace {

// The owner's own clock costs 0.7 us a pass. A short pass in which the owner loses its core is so
// much longer than others that what is learned takes it for an outlier.
constexpr std::int64_t kLongPassNs = 300'000;
// Less than this share of a pass is what any machine takes for itself.
constexpr double kDisturbedShare = 0.05;
// A worker's wait is known once it runs again: in the passes before it was missing too. Programs
// that share a core take turns of a few milliseconds.
constexpr std::int64_t kEchoNs = 20'000'000;
// Bursts of seconds are an exception, a neighbour that never rests is not.
constexpr double kMemoryNs = 20e9;
constexpr double kMostOfTheTime = 0.9;
// The owner changes cores where it has lost a fifth of so much time. (What it computed last is in
// the caches of the core that it leaves: some 100 us.)
constexpr std::int64_t kJudgedNs = 50'000'000;
constexpr std::int64_t kLostPart = 5;

}  // namespace

void PassWatch::Begin(std::int64_t expected_ns) {
  watches_owner_ = expected_ns >= kLongPassNs;
  if (watches_owner_) owner_.Restart();
}

CoreWaits PassWatch::End(const ThreadPool& pool) {
  const std::int64_t workers_ns = pool.waited_ns();
  const std::int64_t before_ns = std::exchange(workers_ns_, workers_ns);
  return {.owner_ns = watches_owner_ ? owner_.Take() : 0, .workers_ns = workers_ns - before_ns};
}

bool Disturbance::Observe(std::int64_t now_ns, std::int64_t pass_ns, const CoreWaits& waits) {
  const auto pass = static_cast<double>(pass_ns);
  const auto waited = static_cast<double>(waits.owner_ns + waits.workers_ns);
  if (waited > kDisturbedShare * pass) calm_from_ns_ = now_ns + kEchoNs;
  const bool disturbed = now_ns < calm_from_ns_;
  share_ += pass / (kMemoryNs + pass) * ((disturbed ? 1 : 0) - share_);
  return disturbed && share_ < kMostOfTheTime;
}

bool OwnersCore::Observe(std::int64_t pass_ns, const CoreWaits& waits, int threads) {
  passes_ns_ += pass_ns;
  waits_.owner_ns += waits.owner_ns;
  waits_.workers_ns += waits.workers_ns;
  if (passes_ns_ < kJudgedNs) return false;
  const bool lost = waits_.owner_ns > passes_ns_ / kLostPart;
  const bool most = threads > 1 && waits_.owner_ns > 2 * waits_.workers_ns / (threads - 1);
  passes_ns_ = 0;
  waits_ = {};
  return lost && most;
}

}  // namespace foretoken
