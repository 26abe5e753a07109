#include "apps/foretoken/server/pulls/puller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A client that waits.
struct Client {
  PullListener Listener() {
    return {.gone = [this] { return gone.load(); },
            .progress = [this](std::uint64_t done, std::uint64_t) { steps.push_back(done); },
            .done = [this](const Status& status) { end.set_value(status); }};
  }
  Status Wait() { return end.get_future().get(); }

  std::atomic<bool> gone = false;
  std::vector<std::uint64_t> steps;
  std::promise<Status> end;
};

Status UntilCancelled(const PullHooks& hooks) {
  while (!hooks.cancelled()) std::this_thread::yield();
  return Error{ErrorCode::kCancelled, "cancelled"};
}

TEST(Puller, TellsProgressAndTheEnd) {
  Puller puller(
      [](const std::string& name, const PullHooks& hooks) -> Status {
        EXPECT_EQ(name, "a/b");
        hooks.progress(0, 0);
        hooks.progress(0, 100);
        for (std::uint64_t i = 1; i < 100; ++i) hooks.progress(i, 100);  // Too often.
        hooks.progress(100, 100);
        return {};
      },
      1000);
  Client client;
  ASSERT_TRUE(puller.Begin("a/b", client.Listener()));
  EXPECT_TRUE(client.Wait().ok());
  EXPECT_THAT(client.steps, ElementsAre(0, 0, 100));
}

TEST(Puller, OneAtATimeAndTheNextWhenItHasEnded) {
  Puller puller([](const std::string&, const PullHooks& hooks) { return UntilCancelled(hooks); },
                1000);
  Client first;
  Client second;
  ASSERT_TRUE(puller.Begin("a/b", first.Listener()));
  EXPECT_FALSE(puller.Begin("c/d", second.Listener()));
  first.gone = true;
  EXPECT_EQ(first.Wait().error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(puller.Begin("c/d", second.Listener()));
  puller.Stop();
  EXPECT_EQ(second.Wait().error().code, ErrorCode::kCancelled);
  Client third;
  EXPECT_FALSE(puller.Begin("e/f", third.Listener()));
}

TEST(Puller, WhatIsTooLargeEnds) {
  Puller puller(
      [](const std::string&, const PullHooks& hooks) -> Status {
        hooks.progress(0, 1001);
        return UntilCancelled(hooks);
      },
      1000);
  Client client;
  ASSERT_TRUE(puller.Begin("a/b", client.Listener()));
  EXPECT_THAT(client.Wait().error().message, HasSubstr("more than the 0.0 GB"));
  EXPECT_THAT(client.steps, ElementsAre());
}

}  // namespace
}  // namespace foretoken::server
