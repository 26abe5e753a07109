#include "apps/foretoken/server/engine/core_turns.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken::server {
namespace {

bool ShareCores(const CoreSet& a, const CoreSet& b) {
  return std::ranges::any_of(a, [&b](int core) { return std::ranges::find(b, core) != b.end(); });
}

}  // namespace

bool CoreTurns::IsNext(const CoreSet& cores) const {
  for (const CoreSet* earlier : line_) {
    if (earlier == &cores) return true;
    if (ShareCores(*earlier, cores)) return false;
  }
  return false;
}

void CoreTurns::Take(const CoreSet& cores) {
  std::unique_lock lock(mutex_);
  line_.push_back(&cores);
  given_.wait(lock, [&] { return IsNext(cores); });
}

void CoreTurns::Give(const CoreSet& cores) {
  bool others = false;
  {
    const std::lock_guard lock(mutex_);
    const auto own = std::ranges::find(line_, &cores);
    FT_CHECK(own != line_.end(), "a turn is given back once");
    line_.erase(own);
    others = !line_.empty();
  }
  if (others) given_.notify_all();
}

}  // namespace foretoken::server
