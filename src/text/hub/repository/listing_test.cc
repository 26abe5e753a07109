#include "text/hub/repository/listing.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

const std::string kCommit(40, 'c');
const std::string kBlob(40, 'b');
const std::string kSha256(64, 'a');

std::string WithFiles(const std::string& files) {
  return fmt::format(R"({{"id": "org/name", "sha": "{}", "siblings": [{}]}})", kCommit, files);
}
std::string Entry(const std::string& path) {
  return fmt::format(R"({{"rfilename": "{}", "size": 7, "blobId": "{}"}})", path, kBlob);
}
std::string ListingRefusal(const std::string& text) {
  const Result<HubListing> listing = ParseListing(text, "http://hub");
  return listing.ok() ? "accepted" : listing.error().message;
}

TEST(Listing, TellsContentsFromPointers) {
  const auto listing = ParseListing(
      WithFiles(Entry("config.json") + "," +
                fmt::format(R"({{"rfilename": "a/model.gguf", "size": 5000000000, "blobId": "{}",
                            "lfs": {{"sha256": "{}", "size": 5000000000, "pointerSize": 134}}}})",
                            kBlob, kSha256)),
      "http://hub");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  EXPECT_EQ(listing->commit, kCommit);
  ASSERT_EQ(listing->files.size(), 2U);
  EXPECT_EQ(listing->files[0].size, 7U);
  EXPECT_EQ(listing->files[0].hash, kBlob);
  EXPECT_FALSE(listing->files[0].hash_is_sha256());
  EXPECT_EQ(listing->files[1].path, "a/model.gguf");
  EXPECT_EQ(listing->files[1].size, 5'000'000'000U);
  EXPECT_EQ(listing->files[1].hash, kSha256);
  EXPECT_TRUE(listing->files[1].hash_is_sha256());
}

TEST(Listing, MirrorsMayLeaveSizesAndHashesOut) {
  const auto listing = ParseListing(
      WithFiles(R"({"rfilename": "a.gguf"}, {"rfilename": "b", "size": 5},)" + Entry("c")),
      "http://hub");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  ASSERT_EQ(listing->files.size(), 3U);
  EXPECT_EQ(listing->files[0].hash, "");
  EXPECT_EQ(listing->files[1].hash, "") << "a size alone proves nothing";
  EXPECT_EQ(listing->files[2].hash, kBlob);
}

TEST(Listing, IsNotTrusted) {
  EXPECT_EQ(ListingRefusal("<html>"), "http://hub is no JSON: is that address a hub?");
  EXPECT_THAT(ListingRefusal("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(ListingRefusal("{}"), HasSubstr("lacks the field \"sha\""));
  EXPECT_THAT(ListingRefusal(R"({"sha": "main", "siblings": []})"),
              HasSubstr("sha that is no commit"));
  EXPECT_THAT(ListingRefusal(WithFiles(Entry("../../.bashrc"))),
              HasSubstr("names the file '../../.bashrc', which cannot be one"));
  EXPECT_THAT(ListingRefusal(WithFiles(Entry("/etc/passwd"))), HasSubstr("cannot be one"));
  EXPECT_THAT(ListingRefusal(WithFiles(Entry("a") + "," + Entry("a"))), HasSubstr("'a' again"));
  EXPECT_THAT(ListingRefusal(WithFiles(R"({"rfilename": "a", "size": 1, "blobId": "../x"})")),
              HasSubstr("blobId that is none"));
  EXPECT_THAT(ListingRefusal(WithFiles(R"({"rfilename": "a", "size": -1, "blobId": "x"})")),
              HasSubstr("size"));
  EXPECT_THAT(ListingRefusal(WithFiles(
                  R"({"rfilename": "a", "size": 1, "lfs": {"sha256": "../../x", "size": 1}})")),
              HasSubstr("sha256 that is none"));
}

}  // namespace
}  // namespace foretoken
