#include "apps/foretoken/server/engine/core_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace foretoken::server {
namespace {

TEST(CoreTurns, ThoseWhoShareACoreTakeTurns) {
  CoreTurns turns;
  const std::vector<CoreSet> sets = {{0, 1}, {1, 2}, {2, 3}, {0, 3}};
  std::vector<std::atomic<int>> users(4);
  std::atomic<int> clashes = 0;
  std::vector<std::thread> threads;
  for (const CoreSet& cores : sets) {
    threads.emplace_back([&turns, &cores, &users, &clashes] {
      CoreTurn turn(&turns, cores);
      for (int i = 0; i < 2000; ++i) {
        const std::lock_guard held(turn);
        for (const int core : cores) clashes += users[core]++ > 0 ? 1 : 0;
        for (const int core : cores) --users[core];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
}

TEST(CoreTurns, OtherCoresAreNotHeldUp) {
  CoreTurns turns;
  const CoreSet low = {0, 1};
  const CoreSet high = {2, 3};
  turns.Take(low);
  turns.Take(high);  // Else this waits for ever.
  turns.Give(low);
  turns.Give(high);
}

TEST(CoreTurns, WhoComesFirstIsServedFirst) {
  CoreTurns turns;
  const CoreSet mine = {0};
  const CoreSet other = {0, 1};
  turns.Take(mine);
  std::atomic<bool> waits = false;
  std::atomic<int> had = 0;
  std::thread thread([&] {
    waits = true;
    turns.Take(other);
    ++had;
    turns.Give(other);
  });
  while (!waits) std::this_thread::yield();
  // Once it stands in line, who gives its turn back and wants it again comes behind.
  for (int i = 0; had == 0 && i < 100'000'000; ++i) {
    turns.Give(mine);
    turns.Take(mine);
  }
  EXPECT_EQ(had, 1);
  turns.Give(mine);
  thread.join();
}

}  // namespace
}  // namespace foretoken::server
