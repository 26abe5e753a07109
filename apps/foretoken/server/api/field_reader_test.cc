#include "apps/foretoken/server/api/field_reader.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

std::string Mended(std::string text) {
  MendJson(&text);
  return text;
}

TEST(MendJson, HalfASurrogatePairIsReplaced) {
  EXPECT_EQ(Mended(R"(["\ud83d\ude00"])"), R"(["\ud83d\ude00"])");
  EXPECT_EQ(Mended(R"(["\ud83d"])"), R"(["\uFFFD"])");
  EXPECT_EQ(Mended(R"(["\uDE00\ud83d\u0041"])"), R"(["\uFFFD\uFFFD\u0041"])");
  EXPECT_EQ(Mended(R"(["\ud83d\ud83d\ude00"])"), R"(["\uFFFD\ud83d\ude00"])");
  // A backslash that is escaped itself begins nothing.
  EXPECT_EQ(Mended(R"(["\\ud83d","\\\ud83d"])"), R"(["\\ud83d","\\\uFFFD"])");
  EXPECT_EQ(Mended(R"(["\u12)"), R"(["\u12)");
  EXPECT_EQ(Mended("\\"), "\\");
  EXPECT_TRUE(ParseJson(Mended(R"({"a":"\ud83d\n\u0000"})")).ok());
}

TEST(MendJson, AByteOrderMarkIsTakenOff) {
  EXPECT_EQ(Mended("\xEF\xBB\xBF{}"), "{}");
  EXPECT_EQ(Mended("{\"a\":\"\xEF\xBB\xBF\"}"), "{\"a\":\"\xEF\xBB\xBF\"}");
}

}  // namespace
}  // namespace foretoken::server
