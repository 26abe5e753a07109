#include "apps/foretoken/server/access/client_places.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

TEST(ClientPlaces, EachClientHasItsOwn) {
  const auto places = std::make_shared<ClientPlaces>();
  std::shared_ptr<void> first = places->Take("alice", 3, 5);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(places->Take("alice", 3, 5), nullptr) << "would be six";
  std::shared_ptr<void> second = places->Take("alice", 2, 5);
  EXPECT_NE(second, nullptr) << "what was refused took nothing";
  EXPECT_EQ(places->Take("alice", 1, 5), nullptr);
  EXPECT_NE(places->Take("bob", 5, 5), nullptr);
  EXPECT_EQ(places->Take("carol", 6, 5), nullptr);
  first.reset();
  EXPECT_NE(places->Take("alice", 3, 5), nullptr) << "given back";
}

}  // namespace
}  // namespace foretoken::server
