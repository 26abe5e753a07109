#include "base/threads/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "base/threads/wait_clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace foretoken {
namespace {

// Long enough to bridge the gap between two operations of a pass, short enough that an idle engine
// burns nothing.
constexpr std::int64_t kSpinNs = 50'000;
constexpr int kSpinsPerClockRead = 32;
// A worker offers its core to others this often, between two pieces. Where another program wants
// the core, the system takes it away for milliseconds sooner or later: better while the worker has
// begun nothing that the others would have to wait for. Where none does, it costs a microsecond.
constexpr std::int64_t kTurnNs = 1'000'000;
// A worker looks into so many other shares for something to help with; the owner into all.
constexpr int kHelped = 4;
// The owner waits some 50 us before it offers its core.
constexpr int kSpinsBeforeYield = 40;

inline void CpuRelax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Some microseconds of waiting; the last answer of `done()`.
template <typename Done>
bool SpinBriefly(const Done& done) {
  for (int i = 0; i < kSpinsPerClockRead; ++i) {
    if (done()) return true;
    CpuRelax();
  }
  return done();
}

}  // namespace

// What the owner of a pool and its workers share. The items of a call are claimed piece by piece,
// each worker's share by itself first; no worker has to come to a Share, and one that comes
// late finds nothing to claim.
struct ThreadPool::Shared {
  // What there is to do in a call.
  struct Work {
    Thunk thunk = nullptr;
    const void* context = nullptr;
    std::int64_t count = 0;  // How many items there are.
    std::int64_t piece = 1;  // How many items a piece has.
    // How many pieces there are; 0: a Run, of which each worker does its part.
    std::int64_t pieces = 0;
  };
  // The work of a call, where the owner may write that of a later one while a worker reads: what it
  // has read counts where the number is the same before and after it (a sequence lock).
  class alignas(64) WorkSlot {
   public:
    void Set(std::uint64_t number, const Work& work) {
      number_.store(0, std::memory_order_relaxed);
      thunk_.store(work.thunk, std::memory_order_release);
      context_.store(work.context, std::memory_order_release);
      count_.store(work.count, std::memory_order_release);
      piece_.store(work.piece, std::memory_order_release);
      pieces_.store(work.pieces, std::memory_order_release);
      // Sequentially consistent, as is `sleepers`: a worker sees the call, or the owner that it
      // sleeps.
      number_.store(number);
    }
    std::uint64_t number() const { return number_.load(); }
    // False where the owner has gone on to another call.
    bool Get(std::uint64_t number, Work* work) const {
      *work = {thunk_.load(std::memory_order_acquire), context_.load(std::memory_order_acquire),
               count_.load(std::memory_order_acquire), piece_.load(std::memory_order_acquire),
               pieces_.load(std::memory_order_acquire)};
      return number_.load(std::memory_order_relaxed) == number;
    }

   private:
    std::atomic<std::uint64_t> number_{0};
    std::atomic<Thunk> thunk_{nullptr};
    std::atomic<const void*> context_{nullptr};
    std::atomic<std::int64_t> count_{0};
    std::atomic<std::int64_t> piece_{1};
    std::atomic<std::int64_t> pieces_{0};
  };
  // How far a share is claimed: the number of the call and the next piece. What says another call
  // is not begun yet, so that nobody has to write all shares before a call. Calls have 44 bits: a
  // hundred thousand of them a second for five years.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::int64_t> waited_ns{0};  // Its worker, for its core.
  };
  static constexpr int kPieceBits = 20;
  static constexpr std::int64_t kMostPieces = (std::int64_t{1} << kPieceBits) - 1;

  explicit Shared(int workers) : size(workers), shares(workers) {}

  // The owner begins a call and returns its number.
  std::uint64_t Begin(const Work& work);
  // Claims a piece of a worker's share; -1 where none is left.
  std::int64_t Claim(std::uint64_t number, const Work& work, int of);
  std::int64_t ShareBegin(const Work& work, int of) const { return work.pieces * of / size; }
  // Does pieces of the share of worker `of` until none is left, or after a piece for which
  // `enough()`; returns how many.
  template <typename Enough>
  std::int64_t Do(std::uint64_t number, const Work& work, int worker, int of, const Enough& enough);
  // Does what `others` workers after `worker` have left undone; returns how many pieces.
  std::int64_t Help(std::uint64_t number, const Work& work, int worker, int others);
  // Where call `number` is, and those that are alike odd or even.
  WorkSlot& SlotOf(std::uint64_t number) { return slots[number % 2]; }

  const int size;
  std::uint64_t calls = 0;  // The owner's.
  std::array<WorkSlot, 2> slots;
  // By workers, of all calls together: pieces that they have done, and their parts of a Run.
  alignas(64) std::atomic<std::int64_t> finished{0};
  std::vector<Share> shares;
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<std::uint32_t> wakings{0};
  std::atomic<bool> stop{false};
};

std::uint64_t ThreadPool::Shared::Begin(const Work& work) {
  const std::uint64_t number = ++calls;
  SlotOf(number).Set(number, work);
  if (sleepers.load() > 0) {
    wakings.fetch_add(1);
    wakings.notify_all();
  }
  return number;
}

std::int64_t ThreadPool::Shared::Claim(std::uint64_t number, const Work& work, int of) {
  std::atomic<std::uint64_t>& next = shares[of].next;
  const std::int64_t end = ShareBegin(work, of + 1);
  std::uint64_t seen = next.load(std::memory_order_relaxed);
  while (true) {
    const std::uint64_t seen_call = seen >> kPieceBits;
    if (seen_call > number) return -1;  // The call is over.
    const std::int64_t piece =
        seen_call == number ? static_cast<std::int64_t>(seen & kMostPieces) : ShareBegin(work, of);
    if (piece >= end) return -1;
    const std::uint64_t claimed = number << kPieceBits | static_cast<std::uint64_t>(piece + 1);
    if (next.compare_exchange_weak(seen, claimed, std::memory_order_relaxed)) return piece;
  }
}

template <typename Enough>
std::int64_t ThreadPool::Shared::Do(std::uint64_t number, const Work& work, int worker, int of,
                                    const Enough& enough) {
  std::int64_t done = 0;
  const std::int64_t last = ShareBegin(work, of + 1) - 1;
  for (std::int64_t piece = 0; (piece = Claim(number, work, of)) >= 0;) {
    const std::int64_t begin = piece * work.piece;
    work.thunk(work.context, worker, begin, std::min(begin + work.piece, work.count));
    ++done;
    if (piece == last || enough()) break;
  }
  return done;
}

std::int64_t ThreadPool::Shared::Help(std::uint64_t number, const Work& work, int worker,
                                      int others) {
  std::int64_t done = 0;
  for (int i = 1; i <= others; ++i) {
    done += Do(number, work, worker, (worker + i) % size, [] { return false; });
  }
  return done;
}

// A worker: one thread's part of the pool.
class ThreadPool::Worker {
 public:
  Worker(Shared* shared, int index) : shared_(*shared), index_(index) {}

  void Loop() {
    while (AwaitCall()) {
      if (shared_.SlotOf(call_).Get(call_, &work_)) {
        Take();
      } else {
        work_ = {};  // The call is over.
      }
    }
  }

 private:
  // Until there is a call that it has not seen; false where the pool ends.
  bool AwaitCall();
  // Helps with the call that it has taken part in, where others are late.
  void HelpTheLate();
  void Take();
  void Sleep();
  bool TurnIsOver() const { return NowNs() >= turn_ends_ns_; }
  // Lets another program have the core, if one wants it.
  void OfferCore();
  // The next call is in the other slot; where some were missed, a later one is.
  bool HasNews() const { return shared_.SlotOf(call_ + 1).number() > call_ || shared_.stop; }

  Shared& shared_;
  const int index_;
  std::uint64_t call_ = 0;  // The latest that it has seen.
  Shared::Work work_;
  std::int64_t turn_ends_ns_ = NowNs() + kTurnNs;
  WaitClock clock_;
};

bool ThreadPool::Worker::AwaitCall() {
  const auto has_news = [this] { return HasNews(); };
  const std::int64_t sleep_ns = NowNs() + kSpinNs;
  while (true) {
    if (SpinBriefly(has_news)) {
      if (shared_.stop) return false;
      const std::uint64_t next = shared_.SlotOf(call_ + 1).number();
      if (next > call_) {  // The owner has not begun to write another one there.
        call_ = next;
        return true;
      }
    }
    HelpTheLate();
    if (TurnIsOver()) OfferCore();
    if (NowNs() >= sleep_ns) Sleep();
  }
}

void ThreadPool::Worker::HelpTheLate() {
  if (work_.pieces == 0) return;
  const std::int64_t done = shared_.Help(call_, work_, index_, std::min(kHelped, shared_.size - 1));
  if (done == 0) {
    work_ = {};  // Everything is begun.
  } else {
    shared_.finished.fetch_add(done, std::memory_order_release);
  }
}

void ThreadPool::Worker::Take() {
  if (work_.pieces == 0) {
    work_.thunk(work_.context, index_, 0, shared_.size);
    work_ = {};
    shared_.finished.fetch_add(1, std::memory_order_release);
    return;
  }
  while (true) {
    const std::int64_t done =
        shared_.Do(call_, work_, index_, index_, [this] { return TurnIsOver(); });
    if (done == 0) return;
    shared_.finished.fetch_add(done, std::memory_order_release);
    if (!TurnIsOver()) return;
    OfferCore();
  }
}

void ThreadPool::Worker::Sleep() {
  ++shared_.sleepers;
  const std::uint32_t wakings = shared_.wakings;
  if (!HasNews()) shared_.wakings.wait(wakings);
  --shared_.sleepers;
  clock_.Restart();
}

void ThreadPool::Worker::OfferCore() {
  sched_yield();
  shared_.shares[index_].waited_ns.fetch_add(clock_.Take(), std::memory_order_relaxed);
  turn_ends_ns_ = NowNs() + kTurnNs;
}

ThreadPool::ThreadPool(CoreSet cores)
    : cores_(std::move(cores)),
      core_of_(cores_.begin(), cores_.end()),
      seen_waited_(cores_.size()),
      shared_(std::make_unique<Shared>(Int(cores_.size()))) {
  FT_CHECK(!cores_.empty(), "a thread pool needs at least one core");
  try {
    for (int worker = 1; worker < size(); ++worker) {
      threads_.emplace_back([this, worker] {
        PinCurrentThread(cores_[worker]);
        Worker(shared_.get(), worker).Loop();
      });
    }
  } catch (...) {
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  shared_->stop = true;
  ++shared_->wakings;
  shared_->wakings.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Adopt() { PinCurrentThread(core_of_[0]); }

std::int64_t ThreadPool::waited_ns() const {
  std::int64_t sum = 0;
  for (const Shared::Share& share : shared_->shares) {
    sum += share.waited_ns.load(std::memory_order_relaxed);
  }
  return sum;
}

void ThreadPool::MoveOwner() {
  std::size_t best = 0;
  std::int64_t least = 0;
  for (std::size_t worker = 1; worker < core_of_.size(); ++worker) {
    const std::int64_t waited = shared_->shares[worker].waited_ns.load(std::memory_order_relaxed);
    const std::int64_t lately = waited - std::exchange(seen_waited_[worker], waited);
    if (best == 0 || lately < least) {
      best = worker;
      least = lately;
    }
  }
  if (best == 0) return;
  std::swap(core_of_[0], core_of_[best]);
  PinThread(threads_[best - 1].native_handle(), core_of_[best]);
  PinCurrentThread(core_of_[0]);
}

void ThreadPool::RunAll(Thunk thunk, const void* context) {
  shared_->Begin({.thunk = thunk, .context = context});
  thunk(context, 0, 0, size());
  Await(size() - 1, [] { return std::int64_t{0}; });
}

void ThreadPool::ShareOut(std::int64_t count, std::int64_t piece, Thunk thunk,
                          const void* context) {
  if (count <= 0) return;
  piece = std::max({piece, std::int64_t{1}, (count - 1) / Shared::kMostPieces + 1});
  const Shared::Work work{thunk, context, count, piece, (count - 1) / piece + 1};
  const std::uint64_t number = shared_->Begin(work);
  const std::int64_t done = shared_->Do(number, work, 0, 0, [] { return false; });
  // The owner looks into all shares: whoever does not come, nothing is left.
  Await(work.pieces - done, [&] { return shared_->Help(number, work, 0, size() - 1); });
}

// Until the workers have done `parts`, less those that `help` does in their place.
template <typename Help>
void ThreadPool::Await(std::int64_t parts, const Help& help) {
  expected_ += parts;
  const auto done = [&] { return shared_->finished.load(std::memory_order_acquire) == expected_; };
  for (int spins = 0; !SpinBriefly(done); ++spins) {
    expected_ -= help();
    // Workers that share a core with other programs may be late: do not starve them.
    if (spins >= kSpinsBeforeYield) std::this_thread::yield();
  }
}

}  // namespace foretoken
