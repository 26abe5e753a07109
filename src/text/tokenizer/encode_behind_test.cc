#include "text/tokenizer/encode_behind.h"

#include <gtest/gtest.h>

#include <string>

#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

TEST(EncodeBehind, WritesTheTextAndNoSpaceBeforeIt) {
  const auto tokenizer = MustLoad(std::string(FORETOKEN_SOURCE_DIR) + "/models/demo-target");
  for (const std::string text :
       {"{\"name\": \"a dragon\"}", "dragon", " dragon", "\n", "  two", "\n\nline", "0", " ", ""}) {
    std::string said;
    for (const Token token : EncodeBehind(*tokenizer, text)) {
      said += tokenizer->TokenBytes(token);
    }
    EXPECT_EQ(said, text);
  }
}

}  // namespace
}  // namespace foretoken
