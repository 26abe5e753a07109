#include "text/hub/transfer/partial_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files/read_file.h"
#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

const std::string kContent = "The quick brown fox jumps over the lazy dog";
constexpr std::uint64_t kPiece = 10;

class Partial : public ::testing::Test {
 protected:
  PartialFile Open(std::uint64_t size = kContent.size(), std::uint64_t piece = kPiece) const {
    return PartialFile::Open(path_, size, piece).value();
  }
  // The next `most` bytes of a piece.
  static void Feed(PartialFile* file, std::size_t piece, std::size_t most) {
    const std::uint64_t count = std::min<std::uint64_t>(most, file->end(piece) - file->next(piece));
    const auto bytes = std::string_view(kContent).substr(file->next(piece), count);
    ASSERT_TRUE(file->Append(piece, bytes).ok());
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "part";
  fs::path name_ = folder_.path() / "whole";
};

TEST_F(Partial, PiecesComeInAnyOrderAndAcrossInterruptions) {
  // One byte at a time, by a writer that is gone after each; the last piece is short.
  std::size_t fed = 0;
  for (std::size_t turn = 0; fed < kContent.size(); ++turn) {
    PartialFile file = Open();
    ASSERT_EQ(file.pieces(), 5U);
    ASSERT_EQ(file.done(), fed);
    const std::size_t piece = (turn * 3) % 5;
    if (file.next(piece) == file.end(piece)) continue;
    Feed(&file, piece, 1);
    ++fed;
  }
  PartialFile file = Open();
  ASSERT_TRUE(file.complete());
  ASSERT_TRUE(file.Finish(name_).ok());
  EXPECT_EQ(ReadFile(name_).value(), kContent);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(Partial, OnlyItsOwnRecordIsGoneOnWith) {
  {
    PartialFile file = Open();
    Feed(&file, 2, 4);
  }
  EXPECT_EQ(Open().done(), 4U);
  EXPECT_EQ(Open(kContent.size(), 7).pieces(), 5U);  // Its pieces stay as they were.
  EXPECT_EQ(Open(kContent.size() + 1).done(), 0U);   // Another size: another file.
  EXPECT_EQ(Open().done(), 0U);

  // Cut anywhere, it begins anew.
  {
    PartialFile file = Open();
    Feed(&file, 0, 10);
  }
  const std::string whole = ReadFile(path_).value();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    if (length == kContent.size()) continue;  // A complete file is left like that.
    folder_.Write("part", whole.substr(0, length));
    EXPECT_EQ(Open().done(), 0U) << length;
  }
  folder_.Write("part", whole + "x");
  EXPECT_EQ(Open().done(), 0U);

  // A record that claims more than a piece has.
  std::string lying = whole;
  lying[kContent.size() + 24] = 11;
  folder_.Write("part", lying);
  EXPECT_EQ(Open().done(), 0U);
}

TEST_F(Partial, IsCompleteWhenItWasStoppedWhileItFinished) {
  folder_.Write("part", kContent);
  PartialFile file = Open();
  EXPECT_TRUE(file.complete());
  ASSERT_TRUE(file.Finish(name_).ok());
  EXPECT_EQ(ReadFile(name_).value(), kContent);
}

TEST_F(Partial, StartsOverAndRestartsPieces) {
  PartialFile file = Open();
  Feed(&file, 0, 10);
  Feed(&file, 1, 5);
  ASSERT_TRUE(file.Restart(1).ok());
  EXPECT_EQ(Open().done(), 10U);
  ASSERT_TRUE(file.StartOver(kContent.size()).ok());
  EXPECT_EQ(file.pieces(), 1U);
  EXPECT_EQ(Open().pieces(), 1U);
  EXPECT_EQ(Open().done(), 0U);
}

TEST_F(Partial, EmptyFilesAreComplete) {
  PartialFile file = Open(0);
  EXPECT_TRUE(file.complete());
  ASSERT_TRUE(file.Finish(name_).ok());
  EXPECT_EQ(fs::file_size(name_), 0U);
}

}  // namespace
}  // namespace foretoken
