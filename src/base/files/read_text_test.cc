#include "base/files/read_text.h"

#include <gmock/gmock.h>

#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

TEST(DecodeText, TakesTheMarksOfOtherSystemsOff) {
  EXPECT_EQ(*DecodeText("caf\xC3\xA9\r\n"), "caf\xC3\xA9\r\n");
  EXPECT_EQ(*DecodeText("\xEF\xBB\xBFroot"), "root");
  EXPECT_EQ(*DecodeText(""), "");
  EXPECT_EQ(*DecodeText("\xFF"), "\xFF");
  EXPECT_EQ(*DecodeText("a\xEF\xBB\xBF"), "a\xEF\xBB\xBF");
}

TEST(DecodeText, BringsUtf16ToUtf8) {
  EXPECT_EQ(*DecodeText("\xFF\xFE"
                        "a\0\xE9\0\r\0\n\0\x3D\xD8\x00\xDE"s),
            "a\xC3\xA9\r\n\xF0\x9F\x98\x80");
  EXPECT_EQ(*DecodeText("\xFE\xFF"
                        "\0a\xD8\x3D\xDE\x00"s),
            "a\xF0\x9F\x98\x80");
  EXPECT_EQ(*DecodeText("\xFF\xFE"), "");
}

TEST(DecodeText, RefusesWhatIsNone) {
  for (const std::string& bytes : {"\xFF\xFE"
                                   "a"s,
                                   "\xFF\xFE\0\0a\0\0\0"s,
                                   "\xFF\xFE\x3D\xD8"
                                   "a\0"s,
                                   "\xFF\xFE\x00\xDE"s, "\xFF\xFE\x3D\xD8"s}) {
    const auto text = DecodeText(bytes);
    ASSERT_FALSE(text.ok());
    EXPECT_THAT(text.error().message, HasSubstr("save it as UTF-8"));
  }
}

TEST(ReadText, ReadsAFile) {
  const TemporaryFolder folder;
  folder.Write("text", "\xEF\xBB\xBFx");
  EXPECT_EQ(*ReadText(folder.path() / "text"), "x");
  EXPECT_FALSE(ReadText(folder.path() / "none").ok());
}

}  // namespace
}  // namespace foretoken
