#include "apps/foretoken/server/work_pool.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace foretoken::server {
namespace {

bool Wanted() { return false; }
void Failed() { FAIL(); }

// Threads that wait until they are let go, so that a test decides what has come when one is free.
class WorkPoolTest : public testing::Test {
 protected:
  // Two threads: one for everything, one for what is short.
  void SetUp() override {
    auto pool = WorkPool::Start(2);
    ASSERT_TRUE(pool.ok());
    pool_ = std::move(*pool);
  }
  void TearDown() override {
    Open();
    pool_.reset();
  }

  // Takes one thread; two of these take both.
  void Hold(bool takes_long) {
    std::promise<void> began;
    pool_->Run({.client = "holder",
                .takes_long = takes_long,
                .unwanted = Wanted,
                .work =
                    [&began, gate = gate_.get_future().share()] {
                      began.set_value();
                      gate.wait();
                    },
                .failed = Failed});
    began.get_future().wait();
  }
  void Open() {
    if (!std::exchange(open_, true)) gate_.set_value();
  }

  std::unique_ptr<WorkPool> pool_;

 private:
  std::promise<void> gate_;
  bool open_ = false;
};

TEST_F(WorkPoolTest, LongJobsLeaveAThreadToShortOnes) {
  Hold(/*takes_long=*/true);
  std::promise<void> done;
  for (int i = 0; i < 3; ++i) {
    pool_->Run(
        {.client = "a", .takes_long = true, .unwanted = Wanted, .work = [] {}, .failed = Failed});
  }
  pool_->Run(
      {.client = "a", .unwanted = Wanted, .work = [&] { done.set_value(); }, .failed = Failed});
  done.get_future().wait();  // Beside the long ones, which are not over.
}

TEST_F(WorkPoolTest, ClientsTakeTurns) {
  Hold(/*takes_long=*/true);
  std::mutex mutex;
  std::string order;
  std::promise<void> done;
  const auto run = [&](const std::string& client) {
    pool_->Run({.client = client,
                .takes_long = true,
                .unwanted = Wanted,
                .work =
                    [&, client] {
                      const std::lock_guard lock(mutex);
                      order += client;
                      if (order.size() == 6) done.set_value();
                    },
                .failed = Failed});
  };
  for (int i = 0; i < 4; ++i) run("a");
  run("b");
  run("c");
  Open();
  done.get_future().wait();
  EXPECT_EQ(order, "abcaaa");
}

TEST_F(WorkPoolTest, WhatNobodyWaitsForIsLeftOut) {
  std::promise<void> done;
  pool_->Run({.client = "a", .unwanted = [] { return true; }, .work = Failed, .failed = Failed});
  pool_->Run(
      {.client = "a", .unwanted = Wanted, .work = [&] { done.set_value(); }, .failed = Failed});
  done.get_future().wait();
}

TEST_F(WorkPoolTest, MemoryThatCannotBeHadIsTold) {
  std::promise<void> told;
  pool_->Run({.client = "a",
              .unwanted = Wanted,
              .work = [] { throw std::bad_alloc(); },
              .failed = [&] { told.set_value(); }});
  told.get_future().wait();
}

TEST_F(WorkPoolTest, EndsWhatItHasTaken) {
  int done = 0;
  Hold(/*takes_long=*/true);
  for (int i = 0; i < 5; ++i) {
    pool_->Run({.client = "a",
                .takes_long = true,
                .unwanted = Wanted,
                .work = [&] { ++done; },
                .failed = Failed});
  }
  Open();
  pool_.reset();
  EXPECT_EQ(done, 5);
}

}  // namespace
}  // namespace foretoken::server
