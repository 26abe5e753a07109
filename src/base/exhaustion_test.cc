#include "base/threads/run_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/exhaustion.h"
#include "base/threads/thread_pool.h"

namespace foretoken {
namespace {

TEST(RunThreads, DoesEveryPartOnce) {
  std::vector<std::atomic<int>> done(9);
  RunThreads(9, [&](int part) { ++done[part]; });
  for (const auto& times : done) EXPECT_EQ(times, 1);
}

TEST(RunThreads, ThrowsWhatAPartThrewWhenAllAreDone) {
  std::atomic<int> done = 0;
  const auto work = [&](int part) {
    ++done;
    if (part == 2) throw std::runtime_error("part 2");
  };
  EXPECT_THROW(RunThreads(4, work), std::runtime_error);
  EXPECT_EQ(done, 4);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // They map terabytes.
// More than the few whose stacks are kept from threads that have ended.
constexpr int kManyThreads = 64;

// In a process of its own that may map 4 MB more, half of a thread's stack. Exits with what `check`
// returns.
template <typename Check>
[[noreturn]] void InFullSpace(const Check& check) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (4 << 20);
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  std::_Exit(check() ? 0 : 1);
}

TEST(RunThreads, GoesOnWithFewerThreads) {
  EXPECT_EXIT(InFullSpace([] {
                std::atomic<int> done = 0;
                RunThreads(kManyThreads, [&](int) { ++done; });
                return done == kManyThreads;
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST(ThreadPool, ThrowsWhereNoThreadStarts) {
  EXPECT_EXIT(InFullSpace([] {
                try {
                  const ThreadPool pool(CoreSet(kManyThreads, 0));
                } catch (const std::system_error& error) {
                  return ExhaustionSentence(error).starts_with("the system starts no further");
                }
                return false;
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST(Exhaustion, TellsHowMuchMemoryWasWanted) {
  const Status status = OrExhausted([]() -> Status { throw OutOfMemory(1'500'000); });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(status.error().message,
              ::testing::HasSubstr("there is not enough memory for 1.5 MB more"));
}

TEST(Exhaustion, MemoryLeftAsksTheSystem) {
  EXPECT_TRUE(MemoryLeft(1 << 20));
  EXPECT_EXIT(InFullSpace([] { return !MemoryLeft(64 << 20); }), ::testing::ExitedWithCode(0), "");
}

TEST(Exhaustion, WhatNobodyCatchesEndsWithASentence) {
  const auto uncaught = [] {
    EndOnExhaustion();
    std::thread([] { throw OutOfMemory(2'000'000); }).join();
  };
  EXPECT_EXIT(uncaught(), ::testing::ExitedWithCode(1), "^foretoken: there is not enough memory");
}
#endif

}  // namespace
}  // namespace foretoken
