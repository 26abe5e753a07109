#include "apps/foretoken/server/pulls/puller.h"

#include <chrono>
#include <utility>

#include "base/exhaustion.h"

namespace foretoken::server {

Puller::~Puller() { Stop(); }

void Puller::Stop() {
  stop_ = true;
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) thread_.join();
}

bool Puller::Begin(std::string name, PullListener listener) {
  const std::lock_guard lock(mutex_);
  if (stop_ || busy_.exchange(true)) return false;
  if (thread_.joinable()) thread_.join();
  try {
    thread_ = std::thread(
        [this, name = std::move(name), listener = std::move(listener)] { Run(name, listener); });
  } catch (...) {
    busy_ = false;
    throw;
  }
  return true;
}

void Puller::Run(const std::string& name, const PullListener& listener) {
  constexpr auto kBetween = std::chrono::milliseconds(100);  // Two lines of progress.
  bool too_large = false;
  std::uint64_t last_all = 0;
  std::chrono::steady_clock::time_point next;
  const auto progress = [&](std::uint64_t done, std::uint64_t all) {
    const auto now = std::chrono::steady_clock::now();
    too_large = too_large || all > most_bytes_;
    if (too_large || (now < next && all == last_all && done < all)) return;
    next = now + kBetween;
    last_all = all;
    listener.progress(done, all);
  };
  const PullHooks hooks{.cancelled = [&] { return stop_ || too_large || listener.gone(); },
                        .progress = progress};
  const Result<bool> pulled = OrExhausted([&]() -> Result<bool> {
    FT_RETURN_IF_ERROR(pull_(name, hooks));
    return true;
  });
  Status status;
  if (!pulled.ok()) status = pulled.error();
  if (too_large) {
    status = Invalid("the model has more than the {:.1f} GB that clients may have fetched at once",
                     static_cast<double>(most_bytes_) / 1e9);
  }
  busy_ = false;  // Before the client can know, and send the next request.
  listener.done(status);
}

}  // namespace foretoken::server
