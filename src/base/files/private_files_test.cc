#include "base/files/private_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

mode_t RightsOf(const fs::path& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(PrivateFiles, NewFoldersAreTheirOwnersAloneAndOldOnesStayAsTheyAre) {
  const TemporaryFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const mode_t before = umask(0);
  const Status made = MakePrivateFolders(folder.path() / "a" / "b" / "");
  umask(before);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(RightsOf(folder.path() / "a"), 0700);
  EXPECT_EQ(RightsOf(folder.path() / "a" / "b"), 0700);
  EXPECT_EQ(RightsOf(folder.path()), 0755);
  EXPECT_TRUE(MakePrivateFolders(folder.path() / "a" / "b").ok()) << "it is there";
}

TEST(PrivateFiles, AFileInTheWayIsAnError) {
  const TemporaryFolder folder;
  folder.Write("file", "");
  const Status made = MakePrivateFolders(folder.path() / "file" / "below");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("file cannot be made: File exists"), std::string::npos)
      << made.error().message;
}

TEST(PrivateFiles, SaysWhoMayReadAFile) {
  const TemporaryFolder folder;
  folder.Write("keys", "secret");
  const fs::path keys = folder.path() / "keys";
  ASSERT_EQ(chmod(keys.c_str(), 0644), 0);
  EXPECT_TRUE(IsReadableByAll(keys));
  ASSERT_EQ(chmod(keys.c_str(), 0640), 0);
  EXPECT_FALSE(IsReadableByAll(keys)) << "a group is chosen";
  EXPECT_FALSE(IsReadableByAll(folder.path() / "nothing"));
}

}  // namespace
}  // namespace foretoken
