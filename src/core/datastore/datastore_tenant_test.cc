#include "core/datastore/datastore_tenant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/temporary_testing.h"
#include "base/numbers/integers.h"
#include "core/datastore/datastore_testing.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

DatastoreOptions TenantOptions() {
  DatastoreOptions options;
  options.tokenizer = {"tiny", std::string(64, 'a'), 1000};
  return options;
}

// How often `pattern` occurs in what the tenant sees.
std::uint64_t Occurrences(const std::shared_ptr<DatastoreTenant>& tenant,
                          const std::vector<Token>& pattern) {
  SegmentSearch search;
  const SegmentList segments = tenant->Segments();
  search.Find(segments, pattern, Int(pattern.size()));
  std::uint64_t found = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    found += search.range(Int(pattern.size()), s).size();
  }
  return found;
}

TEST(DatastoreTenant, SeesWhatIsSharedAndItsOwnOnly) {
  const TemporaryFolder directory;
  {
    auto shared = Datastore::Open(directory.path() / "shared", TenantOptions());
    ASSERT_TRUE(shared.ok());
    ASSERT_TRUE((*shared)->Learn(std::vector<Token>{1, 2, 3}).ok());
  }
  {
    auto opened = DatastoreDirectory::Open(directory.path(), TenantOptions(), /*learn=*/true);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    auto alice = (*opened)->Tenant("alice");
    auto bob = (*opened)->Tenant("bob");
    ASSERT_TRUE(alice.ok() && bob.ok());
    EXPECT_EQ(*(*opened)->Tenant("alice"), *alice);
    EXPECT_EQ(Occurrences(*alice, {1, 2}), 1U);
    EXPECT_EQ(Occurrences(*alice, {7, 8}), 0U);
    (*alice)->Learn(std::vector<Token>{7, 8, 9});
    ASSERT_TRUE((*opened)->Flush().ok());
    EXPECT_EQ(Occurrences(*alice, {7, 8}), 1U);
    EXPECT_EQ(Occurrences(*bob, {7, 8}), 0U);
    EXPECT_EQ(Occurrences(*bob, {1, 2}), 1U);
    EXPECT_THAT((*opened)->Tenant("shared").error().message, HasSubstr("everybody's"));
    EXPECT_FALSE((*opened)->Tenant("../bob").ok());
  }
  // Without learning: what was learned is read, nothing is added, nothing is made.
  auto opened = DatastoreDirectory::Open(directory.path(), TenantOptions(), /*learn=*/false);
  ASSERT_TRUE(opened.ok());
  const std::shared_ptr<DatastoreTenant> alice = *(*opened)->Tenant("alice");
  EXPECT_EQ(Occurrences(alice, {7, 8}), 1U);
  alice->Learn(std::vector<Token>{7, 8, 9});
  EXPECT_TRUE((*opened)->Flush().ok());
  EXPECT_EQ(Occurrences(alice, {7, 8}), 1U);
  ASSERT_TRUE((*opened)->Tenant("carol").ok());
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "carol"));
}

TEST(DatastoreTenant, AnOutputKeepsTheEndOfItsPrompt) {
  const TemporaryFolder directory;
  auto opened = DatastoreDirectory::Open(directory.path(), TenantOptions(), /*learn=*/true);
  ASSERT_TRUE(opened.ok());
  const std::shared_ptr<DatastoreTenant> alice = *(*opened)->Tenant("alice");
  alice->LearnOutput(std::vector<Token>{1, 2, 3, 4, 5, 6, 7}, /*prompt_tokens=*/5);
  alice->LearnOutput(std::vector<Token>{8, 9}, /*prompt_tokens=*/1);
  ASSERT_TRUE((*opened)->Flush().ok());
  EXPECT_EQ(Occurrences(alice, {2, 3, 4, 5, 6, 7}), 1U);
  EXPECT_EQ(Occurrences(alice, {1}), 0U);
  EXPECT_EQ(Occurrences(alice, {8, 9}), 1U);
}

TEST(DatastoreTenant, NamesThatNobodyHoldsMakeRoom) {
  const TemporaryFolder directory;
  auto opened = DatastoreDirectory::Open(directory.path(), TenantOptions(), /*learn=*/true);
  ASSERT_TRUE(opened.ok());
  const auto open = [&](const std::string& name) { return (*opened)->Tenant(name); };
  (*open("taught"))->Learn(std::vector<Token>{7, 8, 9});
  ASSERT_TRUE((*opened)->Flush().ok());
  // Tenants that are held cannot make room.
  std::vector<std::shared_ptr<DatastoreTenant>> held;
  while (held.size() + 1 < DatastoreDirectory::kMaxTenants) {
    held.push_back(*open("held" + std::to_string(held.size())));
  }
  held.back().reset();
  ASSERT_TRUE(open("made-up-1").ok());  // In place of an empty one that nobody holds.
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "held254"));
  EXPECT_TRUE(std::filesystem::exists(directory.path() / "held253"));
  held.back() = *open("made-up-2");
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "made-up-1"));
  // Then that with content: it is closed, not lost.
  const auto last = open("made-up-3");
  ASSERT_TRUE(last.ok());
  const auto refused = open("taught");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("256 namespaces"));
  held.front().reset();
  const auto taught = open("taught");
  ASSERT_TRUE(taught.ok()) << taught.error().message;
  EXPECT_EQ(Occurrences(*taught, {7, 8}), 1U);
}

TEST(DatastoreTenant, ADirectoryThatIsNotThere) {
  const TemporaryFolder directory;
  const auto opened = DatastoreDirectory::Open(directory.path() / "none", TenantOptions(), false);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("is no datastore"));
}

}  // namespace
}  // namespace foretoken
