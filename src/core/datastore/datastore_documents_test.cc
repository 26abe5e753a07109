#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/files/temporary_testing.h"
#include "core/datastore/datastore.h"
#include "core/datastore/datastore_testing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class DatastoreDocuments : public ::testing::Test {
 protected:
  std::unique_ptr<Datastore> Open(std::uint64_t seal_tokens = 1000, bool read_only = false) {
    DatastoreOptions options;
    options.tokenizer = {"tiny", std::string(64, 'a'), 1000};
    options.seal_tokens = seal_tokens;
    options.today = [this] { return today_; };
    options.read_only = read_only;
    auto datastore = Datastore::Open(directory_, options);
    EXPECT_TRUE(datastore.ok()) << (datastore.ok() ? "" : datastore.error().message);
    return datastore.ok() ? std::move(*datastore) : nullptr;
  }
  static void Learn(Datastore* datastore, const std::vector<Token>& document) {
    EXPECT_TRUE(datastore->Learn(document).ok());
    EXPECT_TRUE(datastore->Flush().ok());
  }
  static std::vector<std::vector<int>> DaysAndFirsts(const Datastore& datastore) {
    std::vector<std::vector<int>> found;
    datastore.snapshot()->VisitDocuments([&](const StoredDocument& document) {
      EXPECT_EQ(document.number, found.size() + 1);
      found.push_back({document.day, document.tokens[0]});
    });
    return found;
  }
  // Whether tokens lie in a file, as segments of this vocabulary have them or as logs do.
  bool InFiles(const std::vector<Token>& tokens) const {
    const auto bytes = []<typename T>(const std::vector<T>& values) {
      return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    };
    const std::string narrow = bytes(std::vector<std::uint16_t>(tokens.begin(), tokens.end()));
    const std::string wide = bytes(std::vector<std::uint32_t>(tokens.begin(), tokens.end()));
    for (const auto& entry : fs::directory_iterator(directory_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string content(std::istreambuf_iterator<char>(file), {});
      if (content.find(narrow) != content.npos || content.find(wide) != content.npos) return true;
    }
    return false;
  }

  TemporaryFolder test_directory_;
  const fs::path& directory_ = test_directory_.path();
  int today_ = 20'000;
};

TEST_F(DatastoreDocuments, WhatIsRemovedIsInNoFile) {
  const std::vector<Token> secret = {700, 701, 702, 703};
  const auto datastore = Open();
  TokenText text(1000);
  ASSERT_TRUE(text.Append(std::vector<Token>{1, 2, 3}).ok());
  ASSERT_TRUE(text.Append(secret).ok());
  ASSERT_TRUE(datastore->Import(std::move(text)).ok());
  Learn(datastore.get(), {4, 5});
  Learn(datastore.get(), secret);  // In the log.
  ASSERT_TRUE(InFiles(secret));
  const auto removed =
      datastore->Remove([&](const StoredDocument& document) { return document.tokens[0] == 700; });
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(removed->documents, 2U);
  EXPECT_EQ(removed->tokens, 8U);
  EXPECT_GE(removed->segments, 1);  // Two, unless they have been merged by then.
  EXPECT_FALSE(InFiles(secret));
  EXPECT_TRUE(InFiles({1, 2, 3}));
  const Documents left = {{1, 2, 3}, {4, 5}};
  EXPECT_EQ(DocumentsOf(*datastore->snapshot()), left);
  for (const auto& segment : datastore->snapshot()->segments) {
    EXPECT_TRUE(segment->CheckOrder().ok());
  }
  Learn(datastore.get(), {6});
  EXPECT_EQ(datastore->snapshot()->documents(), 3U);
}

TEST_F(DatastoreDocuments, IsTheSameWhenOpenedAgain) {
  {
    const auto datastore = Open(/*seal_tokens=*/4);
    for (Token token = 1; token <= 6; ++token) Learn(datastore.get(), {token, 9, 9});
    ASSERT_TRUE(
        datastore->Remove([](const auto& document) { return document.number % 2 == 0; }).ok());
  }
  EXPECT_THAT(DaysAndFirsts(*Open()),
              ElementsAre(ElementsAre(20'000, 1), ElementsAre(20'000, 3), ElementsAre(20'000, 5)));
  ASSERT_TRUE(Open()->Remove([](const auto&) { return true; }).ok());
  EXPECT_TRUE(Open()->empty());
  for (const auto& entry : fs::directory_iterator(directory_)) {
    EXPECT_NE(entry.path().extension(), ".segment");
  }
}

TEST_F(DatastoreDocuments, WhatNobodyWantsRemovedStaysAsItIs) {
  const auto datastore = Open();
  Learn(datastore.get(), {1, 2});
  ASSERT_TRUE(datastore->Compact().ok());
  const Manifest before = datastore->manifest();
  const auto removed = datastore->Remove([](const StoredDocument&) { return false; });
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed->documents, 0U);
  EXPECT_EQ(removed->segments, 0);
  EXPECT_EQ(datastore->manifest().segments, before.segments);
}

TEST_F(DatastoreDocuments, KnowTheirDayThroughLogsMergesAndRemovals) {
  {
    const auto datastore = Open();
    Learn(datastore.get(), {1, 1});
    Learn(datastore.get(), {2, 2});
    today_ += 1;
    Learn(datastore.get(), {3, 3});  // The documents of the day before become a segment first.
    EXPECT_EQ(datastore->manifest().segments.size(), 1U);
    today_ += 5;
    TokenText text(1000);
    ASSERT_TRUE(text.Append(std::vector<Token>{4, 4}).ok());
    ASSERT_TRUE(datastore->Import(std::move(text)).ok());
    ASSERT_TRUE(datastore->Compact().ok());
    EXPECT_EQ(datastore->manifest().segments.size(), 1U);
    ASSERT_TRUE(
        datastore->Remove([](const auto& document) { return document.tokens[0] == 2; }).ok());
  }
  // The import has its place before what was in the log then.
  EXPECT_THAT(DaysAndFirsts(*Open(1000, /*read_only=*/true)),
              ElementsAre(ElementsAre(20'000, 1), ElementsAre(20'006, 4), ElementsAre(20'001, 3)));
}

TEST_F(DatastoreDocuments, WithoutDaysInTheManifestTheFileTellsTheLatest) {
  {
    const auto datastore = Open();
    Learn(datastore.get(), {1, 1});
    ASSERT_TRUE(datastore->Compact().ok());
  }
  auto manifest = ReadManifest(directory_);
  ASSERT_TRUE(manifest.ok());
  manifest->segments[0].arrivals.clear();
  ASSERT_TRUE(WriteManifest(MakePosixFiles().get(), directory_, *manifest).ok());
  const fs::path segment = SegmentPath(directory_, manifest->segments[0].number);
  const auto days_since = [](int day) {
    return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())
                   .time_since_epoch() /
               std::chrono::days(1) -
           day;
  };
  fs::last_write_time(segment, fs::last_write_time(segment) - std::chrono::days(10));
  const int day = DaysAndFirsts(*Open(1000, /*read_only=*/true))[0][0];
  EXPECT_GE(days_since(day), 10);
  EXPECT_LE(days_since(day), 11);
}

}  // namespace
}  // namespace foretoken
