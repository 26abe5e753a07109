#include "base/thread_pool.h"

#include "base/check.h"
#include "base/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace foretoken {
namespace {

// Long enough to bridge the gap between two operations of a pass, short enough that an idle engine
// burns nothing.
constexpr std::int64_t kSpinNs = 50'000;
constexpr int kSpinsPerClockRead = 32;

inline void CpuRelax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Spins until `done()` or the time is up; returns the last answer.
template <typename Done>
bool SpinUntil(const Done& done) {
  const std::int64_t deadline = NowNs() + kSpinNs;
  do {
    for (int i = 0; i < kSpinsPerClockRead; ++i) {
      if (done()) return true;
      CpuRelax();
    }
  } while (NowNs() < deadline);
  return done();
}

}  // namespace

struct ThreadPool::Shared {
  // `thunk`, `context` and `stop` are published by the release on `epoch`.
  alignas(64) std::atomic<std::uint32_t> epoch{0};
  Thunk thunk = nullptr;
  const void* context = nullptr;
  bool stop = false;
  alignas(64) std::atomic<int> working{0};
};

ThreadPool::ThreadPool(CoreSet cores)
    : cores_(std::move(cores)), shared_(std::make_unique<Shared>()) {
  FT_CHECK(!cores_.empty(), "a thread pool needs at least one core");
  try {
    for (int worker = 1; worker < size(); ++worker) {
      threads_.emplace_back([this, worker] { WorkerLoop(worker); });
    }
  } catch (...) {
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  shared_->stop = true;
  shared_->epoch.fetch_add(1);
  shared_->epoch.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Adopt() { PinCurrentThread(cores_[0]); }

void ThreadPool::Dispatch(Thunk thunk, const void* context) {
  shared_->thunk = thunk;
  shared_->context = context;
  shared_->working.store(size() - 1, std::memory_order_relaxed);
  // Sequentially consistent, so that notify_all sees every worker that went to sleep before; it is
  // one load when none did.
  shared_->epoch.fetch_add(1);
  shared_->epoch.notify_all();
  thunk(context, 0, size());
  const auto done = [&] { return shared_->working.load(std::memory_order_acquire) == 0; };
  // Workers that share a core with other programs may be late: do not starve them.
  while (!SpinUntil(done)) std::this_thread::yield();
}

void ThreadPool::WorkerLoop(int worker) {
  PinCurrentThread(cores_[static_cast<std::size_t>(worker)]);
  std::uint32_t seen = 0;
  while (true) {
    const auto changed = [&] { return shared_->epoch.load(std::memory_order_acquire) != seen; };
    if (!SpinUntil(changed)) shared_->epoch.wait(seen, std::memory_order_acquire);
    ++seen;
    if (shared_->stop) return;
    shared_->thunk(shared_->context, worker, size());
    shared_->working.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace foretoken
