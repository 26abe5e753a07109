#include "apps/foretoken/server/doors/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;

TEST(Tokenize, TextsAndTokensAreRead) {
  const auto text = ParseTokenizeRequest(R"({"content":"a","add_special":true})");
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text.value().add_special);
  const auto no_text = ParseTokenizeRequest(R"({"text":"a"})");
  ASSERT_FALSE(no_text.ok());
  EXPECT_EQ(no_text.error().field, "content");
  const auto tokens = ParseDetokenizeRequest(R"({"tokens":[0,9]})", 10);
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(tokens.value(), ElementsAre(0, 9));
  const auto no_tokens = ParseDetokenizeRequest(R"({"tokens":[10]})", 10);
  ASSERT_FALSE(no_tokens.ok());
  EXPECT_EQ(no_tokens.error().field, "tokens");
}

}  // namespace
}  // namespace foretoken::server
