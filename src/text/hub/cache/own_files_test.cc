#include "text/hub/cache/own_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/read_file.h"
#include "base/files/temporary_testing.h"
#include "text/hub/cache/file_lock.h"
#include "text/hub/cache/hub_cache.h"
#include "text/hub/transfer/partial_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A cache beside something that is not its business. Root's tests give things to another account.
class OwnFiles : public testing::Test {
 protected:
  static constexpr uid_t kNobody = 65534;

  OwnFiles() {
    fs::create_directories(cache_);
    folder_.Write("victim", "precious");
  }
  void TearDown() override { EXPECT_EQ(ReadFile(victim_).value(), "precious"); }

  TemporaryFolder folder_;
  fs::path victim_ = folder_.path() / "victim";
  fs::path cache_ = folder_.path() / "cache";
  fs::path planted_ = cache_ / "blob.foretoken.incomplete";
};

TEST_F(OwnFiles, ALinkIsNotFollowed) {
  fs::create_symlink(victim_, planted_);
  {
    auto partial = PartialFile::Open(planted_, 3, 3);
    ASSERT_TRUE(partial.ok()) << partial.error().message;
    EXPECT_TRUE(partial->Append(0, "new").ok());
  }
  EXPECT_FALSE(fs::is_symlink(planted_));
}

TEST_F(OwnFiles, AFileOfTwoNamesIsNotWrittenTo) {
  fs::create_hard_link(victim_, planted_);
  ASSERT_TRUE(PartialFile::Open(planted_, 3, 3).ok());
  EXPECT_EQ(fs::hard_link_count(victim_), 1U);
}

TEST_F(OwnFiles, AFifoOrAFileOfAnotherMakesWay) {
  ASSERT_EQ(mkfifo(planted_.c_str(), 0600), 0);
  EXPECT_TRUE(PartialFile::Open(planted_, 3, 3).ok());
  EXPECT_TRUE(fs::is_regular_file(planted_));
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chown(planted_.c_str(), kNobody, kNobody), 0);
  EXPECT_TRUE(PartialFile::Open(planted_, 3, 3).ok());
  struct stat status = {};
  ASSERT_EQ(stat(planted_.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0U);
}

TEST_F(OwnFiles, WhatWasBegunHereIsGoneOnWith) {
  {
    auto partial = PartialFile::Open(planted_, 3, 3);
    ASSERT_TRUE(partial.ok() && partial->Append(0, "ne").ok());
  }
  EXPECT_EQ(PartialFile::Open(planted_, 3, 3)->done(), 2U);
}

TEST_F(OwnFiles, ALockIsNoLink) {
  const fs::path made = folder_.path() / "made";
  fs::create_symlink(made, cache_ / "x.lock");
  EXPECT_FALSE(FileLock::Try(cache_ / "x.lock", FileLock::Kind::kShared).ok());
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(OwnFiles, NewFilesHaveNamesThatNobodyForesees) {
  EXPECT_NE(FreshName(cache_), FreshName(cache_));
  EXPECT_TRUE(WriteWhole(cache_ / "main", cache_, "commit").ok());
  EXPECT_EQ(ReadFile(cache_ / "main").value(), "commit");
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_), fs::directory_iterator()), 1);
  EXPECT_FALSE(WriteWhole(cache_ / "no" / "main", cache_, "commit").ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_), fs::directory_iterator()), 1)
      << "nothing is left behind";
}

TEST_F(OwnFiles, FoldersThatAnotherAccountHasLinkedElsewhereAreRefused) {
  const CachedModel model(cache_, "org/name");
  fs::create_directories(model.folder());
  fs::create_directories(folder_.path() / "elsewhere");
  fs::create_symlink(folder_.path() / "elsewhere", model.folder() / "blobs");
  EXPECT_TRUE(model.Create().ok()) << "one's own link is a way to use another disk";
  if (geteuid() != 0) GTEST_SKIP() << "only root gives links away";
  ASSERT_EQ(lchown((model.folder() / "blobs").c_str(), kNobody, kNobody), 0);
  const Status refused = model.Create();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("is a link that another account has made"));
}

}  // namespace
}  // namespace foretoken
