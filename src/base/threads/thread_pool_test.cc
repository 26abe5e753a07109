#include "base/threads/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// Pinning to a core that several workers share, or to one that does not exist, is harmless.
CoreSet Workers(int count) {
  CoreSet cores(Size(count));
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, EveryWorkerRunsOncePerCall) {
  ThreadPool pool(Workers(GetParam()));
  std::vector<int> calls(pool.size(), 0);
  for (int round = 1; round <= 1000; ++round) {
    pool.Run([&](int worker, int workers) {
      EXPECT_EQ(workers, pool.size());
      ++calls[worker];
    });
    for (const int count : calls) ASSERT_EQ(count, round);
  }
}

TEST_P(ThreadPoolTest, WakesFromSleep) {
  ThreadPool pool(Workers(GetParam()));
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> calls{0};
    pool.Run([&](int, int) { calls.fetch_add(1); });
    EXPECT_EQ(calls.load(), pool.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_P(ThreadPoolTest, WorkOfOneCallIsVisibleToTheNext) {
  ThreadPool pool(Workers(GetParam()));
  std::vector<int> values(pool.size(), 0);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> next(values.size());
    pool.Run([&](int worker, int workers) {
      const std::size_t w = worker;
      next[w] = values[(w + 1) % Size(workers)] + 1;
    });
    values = next;
  }
  for (const int value : values) EXPECT_EQ(value, 500);
}

TEST_P(ThreadPoolTest, SharesEachItemOutOnce) {
  ThreadPool pool(Workers(GetParam()));
  for (const int count : {1, 2, 7, 64, 1000, 3'000'000}) {
    for (const int piece : {1, 3, 50, 5000}) {
      std::vector<std::atomic<std::uint8_t>> taken(count);
      std::vector<std::atomic<bool>> working(pool.size());
      pool.Share(count, piece, [&](int worker, std::int64_t begin, std::int64_t end) {
        EXPECT_FALSE(working[worker].exchange(true));
        EXPECT_LT(begin, end);
        if (pool.size() > 1 && count <= 1000) {  // More have larger pieces.
          EXPECT_LE(end - begin, piece);
        }
        for (std::int64_t i = begin; i < end; ++i) ++taken[i];
        working[worker] = false;
      });
      EXPECT_TRUE(std::ranges::all_of(taken, [](const auto& times) { return times == 1; }));
    }
  }
}

// As if the core of each worker in turn were taken away once it has begun: it stays in its first
// piece until all other pieces are done, which others must do.
TEST_P(ThreadPoolTest, NobodyWaitsForMoreThanThePieceThatAWorkerHasBegun) {
  ThreadPool pool(Workers(GetParam()));
  if (pool.size() == 1) return;
  for (int held = 0; held < pool.size(); ++held) {
    std::atomic<int> done = 0;
    std::atomic<bool> is_held = false;
    // A worker that comes late, or never, finds nothing to be held up by.
    pool.Share(64, 1, [&](int worker, std::int64_t, std::int64_t) {
      if (worker == held && !is_held.exchange(true)) {
        while (done < 63) std::this_thread::yield();
      }
      ++done;
    });
    EXPECT_EQ(done, 64);
  }
}

TEST_P(ThreadPoolTest, SharedWorkOfOneCallIsVisibleToTheNext) {
  ThreadPool pool(Workers(GetParam()));
  constexpr std::size_t kCount = 40;
  std::vector<int> values(kCount, 0);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> next(kCount);
    pool.Share(kCount, 3, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::size_t i = begin; i < Size(end); ++i) {
        next[i] = values[(i + 17) % kCount] + 1;
      }
    });
    values = next;
    // A call to all workers in between finds them wherever they are.
    std::atomic<int> calls = 0;
    if (round % 50 == 0) pool.Run([&](int, int) { ++calls; });
    EXPECT_EQ(calls, round % 50 == 0 ? pool.size() : 0);
  }
  for (const int value : values) EXPECT_EQ(value, 500);
}

int CoreMask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  int cores = 0;
  for (int core = 0; core < 8; ++core) cores |= CPU_ISSET(core, &mask) ? 1 << core : 0;
  return cores;
}

TEST(ThreadPool, OwnerChangesCoresWithAWorker) {
  const std::vector<int> cores = AvailableCores();
  if (cores.size() < 2 || cores[0] >= 8 || cores[1] >= 8) GTEST_SKIP() << "two cores are needed";
  std::thread([&] {
    ThreadPool pool({cores[0], cores[1]});
    pool.Adopt();
    const auto cores_of = [&] {
      std::vector<int> masks(2);
      pool.Run([&](int worker, int) { masks[worker] = CoreMask(); });
      return masks;
    };
    const std::vector<int> before = cores_of();
    EXPECT_EQ(before, std::vector({1 << cores[0], 1 << cores[1]}));
    pool.MoveOwner();
    EXPECT_EQ(cores_of(), std::vector({1 << cores[1], 1 << cores[0]}));
    pool.MoveOwner();
    EXPECT_EQ(cores_of(), before);
    EXPECT_EQ(pool.cores(), CoreSet({cores[0], cores[1]}));
  }).join();
}

TEST_P(ThreadPoolTest, StopsWhileWorkersSpinOrSleep) {
  for (int round = 0; round < 20; ++round) {
    ThreadPool pool(Workers(GetParam()));
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace foretoken
