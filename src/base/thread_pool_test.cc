#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace foretoken {
namespace {

// Pinning to a core that several workers share, or to one that does not exist, is harmless.
CoreSet Workers(int count) {
  CoreSet cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, EveryWorkerRunsOncePerCall) {
  ThreadPool pool(Workers(GetParam()));
  std::vector<int> calls(static_cast<std::size_t>(pool.size()), 0);
  for (int round = 1; round <= 1000; ++round) {
    pool.Run([&](int worker, int workers) {
      EXPECT_EQ(workers, pool.size());
      ++calls[static_cast<std::size_t>(worker)];
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
  std::vector<int> values(static_cast<std::size_t>(pool.size()), 0);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> next(values.size());
    pool.Run([&](int worker, int workers) {
      const auto w = static_cast<std::size_t>(worker);
      next[w] = values[(w + 1) % static_cast<std::size_t>(workers)] + 1;
    });
    values = next;
  }
  for (const int value : values) EXPECT_EQ(value, 500);
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
