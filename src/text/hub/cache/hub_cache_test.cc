#include "text/hub/cache/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files/read_file.h"
#include "base/files/temporary_testing.h"
#include "text/hub/cache/file_lock.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kOld(40, '1');
const std::string kNew(40, '2');

/// A cache with two revisions of a model that share a file.
class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    EXPECT_TRUE(model_.Create().ok());
    Add("aaaa", "shared", kOld, "config.json");
    Add("bbbb", "old weights", kOld, "sub/model.gguf");
    Add("aaaa", "shared", kNew, "config.json");
    Add("cccc", "new weights!", kNew, "sub/model.gguf");
    EXPECT_TRUE(model_.WriteRef("v1", kOld).ok());
    EXPECT_TRUE(model_.WriteRef("main", kOld).ok());
    EXPECT_TRUE(model_.WriteRef("main", kNew).ok());
    EXPECT_TRUE(model_.WriteRef("refs/pr/1", kNew).ok());
  }

  void Add(const std::string& hash, std::string_view content, const std::string& commit,
           const std::string& path) {
    std::ofstream(model_.Blob(hash), std::ios::binary) << content;
    EXPECT_TRUE(Link(hash, commit, path).ok());
  }
  Status Link(const std::string& hash, const std::string& commit, const std::string& path) const {
    return model_.Link(hash, commit, std::span(&path, 1));
  }
  std::uint64_t Remove(const Removal& removal) {
    return RemoveCached(folder_.path(), "org/name", removal).value();
  }
  bool HasBlob(const std::string& hash) const { return fs::exists(model_.Blob(hash)); }

  TemporaryFolder folder_;
  CachedModel model_{folder_.path(), "org/name"};
};

TEST_F(HubCache, HasTheLayoutOfTheHubsTools) {
  const fs::path root = folder_.path() / "models--org--name";
  EXPECT_EQ(fs::read_symlink(root / "snapshots" / kNew / "config.json"), "../../blobs/aaaa");
  EXPECT_EQ(fs::read_symlink(root / "snapshots" / kNew / "sub" / "model.gguf"),
            "../../../blobs/cccc");
  EXPECT_EQ(ReadFile(root / "refs" / "main").value(), kNew);
  EXPECT_EQ(ReadFile(root / "refs" / "refs" / "pr" / "1").value(), kNew);
  EXPECT_EQ(model_.Lock("aaaa"), folder_.path() / ".locks" / "models--org--name" / "aaaa.lock");
  EXPECT_THAT(CachedRepositories(folder_.path()), ElementsAre("org/name"));
}

TEST_F(HubCache, TellsWhatIsInIt) {
  EXPECT_EQ(model_.CommitOf("main"), kNew);
  EXPECT_EQ(model_.CommitOf(kOld), kOld);
  EXPECT_EQ(model_.CommitOf("other"), std::nullopt);
  const auto revisions = model_.Revisions();
  ASSERT_EQ(revisions.size(), 2U);
  EXPECT_THAT(revisions[0].refs, ElementsAre("v1"));
  EXPECT_THAT(revisions[1].refs, ElementsAre("main", "refs/pr/1"));
  ASSERT_EQ(revisions[1].files.size(), 2U);
  EXPECT_EQ(revisions[1].files[1].path, "sub/model.gguf");
  EXPECT_EQ(revisions[1].files[1].size, 12U);
  EXPECT_EQ(revisions[1].bytes(), 18U);

  // A link that leads nowhere is no file; one to the same content costs nothing.
  fs::remove(model_.Blob("cccc"));
  EXPECT_TRUE(Link("aaaa", kNew, "copy.json").ok());
  const CachedRevision left = model_.Revision(kNew);
  EXPECT_EQ(left.files.size(), 2U);
  EXPECT_EQ(left.bytes(), 6U);
}

TEST_F(HubCache, LinksAreReplacedWhereTheContentIsAnother) {
  EXPECT_TRUE(Link("bbbb", kNew, "sub/model.gguf").ok());
  EXPECT_EQ(ReadFile(model_.Snapshot(kNew) / "sub" / "model.gguf").value(), "old weights");
}

TEST_F(HubCache, RemovingARevisionLeavesWhatOthersUse) {
  EXPECT_EQ(Remove({.commit = kOld}), 11U);
  EXPECT_TRUE(HasBlob("aaaa"));
  EXPECT_FALSE(HasBlob("bbbb"));
  EXPECT_TRUE(HasBlob("cccc"));
  EXPECT_EQ(model_.CommitOf("v1"), std::nullopt);
  EXPECT_EQ(model_.CommitOf("main"), kNew);
  EXPECT_FALSE(fs::exists(model_.Snapshot(kOld)));
}

TEST_F(HubCache, RemovingFilesLeavesTheOthers) {
  EXPECT_EQ(Remove({.paths = {"sub/model.gguf"}}), 23U);
  EXPECT_TRUE(HasBlob("aaaa"));
  EXPECT_FALSE(fs::exists(model_.Snapshot(kNew) / "sub"));
  EXPECT_EQ(model_.CommitOf("main"), kNew);
  // With the last of its files a revision goes, and with the last revision the model.
  EXPECT_EQ(Remove({.paths = {"config.json"}}), 6U);
  EXPECT_FALSE(fs::exists(model_.folder()));
}

TEST_F(HubCache, RemovingAllLeavesNothing) {
  std::ofstream(model_.Blob("dddd").string() + ".foretoken.incomplete") << "half";
  fs::create_symlink("../../nowhere", model_.Blob("foretoken-1.tmp"));
  EXPECT_EQ(Remove({}), 33U);
  EXPECT_FALSE(fs::exists(model_.folder()));
  EXPECT_THAT(CachedRepositories(folder_.path()), ElementsAre());
}

TEST_F(HubCache, WhatIsBeingFetchedStays) {
  const auto never = [] { return false; };
  {
    const auto lock =
        FileLock::Acquire(model_.Lock("foretoken"), FileLock::Kind::kShared, never, nullptr);
    EXPECT_THAT(RemoveCached(folder_.path(), "org/name", {}).error().message,
                HasSubstr("org/name is being fetched or removed by another"));
  }
  std::ofstream(model_.Blob("dddd").string() + ".incomplete") << "half";
  const auto lock =
      FileLock::Acquire(model_.Lock("dddd"), FileLock::Kind::kExclusive, never, nullptr);
  EXPECT_EQ(Remove({}), 29U);
  EXPECT_TRUE(fs::exists(model_.Blob("dddd").string() + ".incomplete"));
}

TEST_F(HubCache, WaitingForALockEndsWhenItIsCancelled) {
  const auto lock = FileLock::Try(model_.Lock("x"), FileLock::Kind::kExclusive);
  int asked = 0;
  bool told = false;
  const auto second = FileLock::Acquire(
      model_.Lock("x"), FileLock::Kind::kExclusive, [&] { return ++asked > 2; },
      [&] { told = true; });
  EXPECT_EQ(second.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace foretoken
