#include "apps/foretoken/server/api/response_store.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

KeptResponse Saying(const std::string& text, std::shared_ptr<const KeptResponse> before = nullptr) {
  return {.before = std::move(before), .turns = {{"user", "?"}, {"assistant", text}}, .json = text};
}

TEST(ResponseStore, AConversationIsAllThatCameBefore) {
  ResponseStore store;
  store.Keep("a", "1", Saying("one"), {});
  store.Keep("a", "2", Saying("two", store.Find("a", "1")), {});
  EXPECT_TRUE(store.Remove("a", "1"));
  EXPECT_FALSE(store.Remove("a", "1"));
  EXPECT_EQ(store.Find("a", "1"), nullptr);
  // What was gone on with stays a part of what followed it.
  const auto conversation = store.Find("a", "2")->Conversation();
  ASSERT_EQ(conversation.size(), 4U);
  EXPECT_EQ(conversation[1].content, "one");
  EXPECT_EQ(conversation[3].content, "two");
}

TEST(ResponseStore, NobodyFindsThoseOfOthers) {
  ResponseStore store;
  store.Keep("a", "1", Saying("one"), {});
  EXPECT_EQ(store.Find("b", "1"), nullptr);
  EXPECT_FALSE(store.Remove("b", "1"));
  EXPECT_NE(store.Find("a", "1"), nullptr);
}

TEST(ResponseStore, TheOldestOfAClientGo) {
  const std::string text(10'000, 'x');
  ResponseStore store({.client_bytes = 70'000, .bytes = 100'000});
  store.Keep("a", "1", Saying(text), {});
  store.Keep("b", "1", Saying(text), {});
  store.Keep("a", "2", Saying(text), {});
  store.Keep("a", "3", Saying(text), {});
  store.Keep("a", "4", Saying(text), {});  // 20,000 each.
  EXPECT_EQ(store.Find("a", "1"), nullptr);
  EXPECT_NE(store.Find("a", "2"), nullptr);
  EXPECT_NE(store.Find("b", "1"), nullptr);
  // All together have a limit too.
  store.Keep("c", "1", Saying(text), {});
  store.Keep("c", "2", Saying(text), {});
  EXPECT_EQ(store.Find("b", "1"), nullptr);
  EXPECT_NE(store.Find("c", "2"), nullptr);
}

TEST(ResponseStore, AConversationMayBeLong) {
  ResponseStore store;
  store.Keep("a", "0", Saying("x"), {});
  constexpr int kMany = 3000;
  for (int i = 1; i < kMany; ++i) {
    store.Keep("a", std::to_string(i), Saying("x", store.Find("a", std::to_string(i - 1))), {});
  }
  const auto last = store.Find("a", std::to_string(kMany - 1));
  EXPECT_EQ(last->Conversation().size(), std::size_t{2 * kMany});
  int links = 0;
  for (const KeptResponse* one = last.get(); one != nullptr; one = one->before.get()) ++links;
  EXPECT_LE(links, 256);
}

TEST(ResponseStore, PartsOfAnswersAreKeptWhileTheyAreUsed) {
  const std::string text(10'000, 'x');
  ResponseStore store({.client_bytes = 50'000, .client_item_bytes = 35'000});
  store.Keep("a", "1", Saying("one"), {{"m1", text}});
  EXPECT_EQ(store.Item("b", "m1"), nullptr);
  for (int i = 2; i < 20; ++i) {
    store.Keep("a", std::to_string(i), Saying(text), {{"m" + std::to_string(i), text}});
    ASSERT_NE(store.Item("a", "m1"), nullptr) << i;
  }
  EXPECT_EQ(store.Find("a", "1"), nullptr);  // The response itself has gone.
  EXPECT_EQ(*store.Item("a", "m1"), text);
  EXPECT_EQ(store.Item("a", "m17"), nullptr);
  EXPECT_NE(store.Item("a", "m19"), nullptr);
  EXPECT_TRUE(store.Remove("a", "19"));
  EXPECT_EQ(store.Item("a", "m19"), nullptr);
}

TEST(ResponseStore, AConversationCountsWhole) {
  // An early response that only a later one keeps alive is not kept for nothing.
  const std::string text(10'000, 'x');
  ResponseStore store({.client_bytes = 70'000});
  store.Keep("a", "1", Saying(text), {});
  store.Keep("a", "2", Saying(text, store.Find("a", "1")), {});
  EXPECT_NE(store.Find("a", "1"), nullptr);
  store.Keep("a", "3", Saying(text, store.Find("a", "2")), {});  // 60,000 of 120,000.
  EXPECT_EQ(store.Find("a", "1"), nullptr);
  EXPECT_EQ(store.Find("a", "2"), nullptr);
  EXPECT_EQ(store.Find("a", "3")->Conversation().size(), 6U);
}

}  // namespace
}  // namespace foretoken::server
