#include "tokenizer/encode_behind.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

TEST(EncodeBehind, WritesTheTextAndNoSpaceBeforeIt) {
  const auto tokenizer = Tokenizer::Load(std::string(FORETOKEN_SOURCE_DIR) + "/models/demo-target");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  for (const std::string text : {"{\"name\": \"a dragon\"}", "dragon", " dragon", "\n", ""}) {
    std::string said;
    for (const Token token : EncodeBehind(**tokenizer, text)) {
      said += (*tokenizer)->TokenBytes(token);
    }
    EXPECT_EQ(said, text);
  }
}

}  // namespace
}  // namespace foretoken
