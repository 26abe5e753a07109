#include "engine/round/disturbance.h"

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

}  // namespace

void PassWatch::Begin(std::int64_t expected_ns) {
  watches_owner_ = expected_ns >= kLongPassNs;
  if (watches_owner_) owner_.Restart();
}

std::int64_t PassWatch::End(const ThreadPool& pool) {
  const std::int64_t workers_ns = pool.waited_ns();
  const std::int64_t waited_ns = workers_ns - workers_ns_;
  workers_ns_ = workers_ns;
  return watches_owner_ ? waited_ns + owner_.Take() : waited_ns;
}

bool Disturbance::Observe(std::int64_t now_ns, std::int64_t pass_ns, std::int64_t waited_ns) {
  const auto pass = static_cast<double>(pass_ns);
  if (static_cast<double>(waited_ns) > kDisturbedShare * pass) calm_from_ns_ = now_ns + kEchoNs;
  const bool disturbed = now_ns < calm_from_ns_;
  share_ += pass / (kMemoryNs + pass) * ((disturbed ? 1 : 0) - share_);
  return disturbed && share_ < kMostOfTheTime;
}

}  // namespace foretoken
