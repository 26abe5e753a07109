#include "text/hub/transfer/checksum.h"

#include <gtest/gtest.h>

#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

TEST(Checksum, IsTheOneThatGitAndOthersCompute) {
  const TemporaryFolder folder;
  folder.Write("file", "hello\nand what is behind it");
  const auto path = folder.path() / "file";
  const auto go_on = [](std::uint64_t) { return true; };
  EXPECT_EQ(HashOfFile(path, 6, HashKind::kGitSha1, go_on).value(),
            "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(HashOfFile(path, 6, HashKind::kSha256, go_on).value(),
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  EXPECT_EQ(HashOfFile(path, 0, HashKind::kGitSha1, go_on).value(),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_FALSE(HashOfFile(path, 1000, HashKind::kSha256, go_on).ok());
  EXPECT_EQ(
      HashOfFile(path, 6, HashKind::kSha256, [](std::uint64_t) { return false; }).error().code,
      ErrorCode::kCancelled);
}

}  // namespace
}  // namespace foretoken
