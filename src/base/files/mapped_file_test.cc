#include "base/files/mapped_file.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

constexpr std::size_t kPages = 16;
constexpr std::size_t kPage = 4096;

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() { folder_.Write("file", std::string(kPages * kPage, 'x')); }

  std::shared_ptr<const MappedFile> Open(WhenLost when) const {
    auto file = MappedFile::Open(path_, when);
    EXPECT_TRUE(file.ok());
    return *file;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "file";
};

std::ptrdiff_t Letters(std::span<const std::byte> bytes) {
  return std::ranges::count(bytes, std::byte{'x'});
}

TEST_F(MappedFileTest, WhatIsCutOffReadsAsZeros) {
  const auto file = Open(WhenLost::kZeros);
  const auto other = Open(WhenLost::kZeros);
  EXPECT_EQ(Letters(file->bytes()), kPages * kPage);
  std::filesystem::resize_file(path_, 3 * kPage);
  EXPECT_FALSE(*file->lost());
  EXPECT_EQ(file->bytes()[10 * kPage + 7], std::byte{0});
  EXPECT_TRUE(*file->lost());
  EXPECT_EQ(Letters(file->bytes()), 3 * kPage);  // From before the first zero too.
  EXPECT_FALSE(*other->lost());
  EXPECT_EQ(Letters(other->bytes()), 3 * kPage);
}

// Kilobytes of a mapping that are in this process's memory.
int Resident(const std::byte* mapping) {
  std::ifstream maps("/proc/self/smaps");
  const std::string begin = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(mapping));
  std::string line;
  while (std::getline(maps, line) && !line.starts_with(begin)) {
  }
  while (std::getline(maps, line)) {
    if (line.starts_with("Rss:")) return std::atoi(line.c_str() + 4);
  }
  return -1;
}

TEST_F(MappedFileTest, WhatIsReleasedTakesNoMemoryAndReadsAsBefore) {
  const auto file = Open(WhenLost::kEnd);
  const auto bytes = file->bytes();
  EXPECT_EQ(Letters(bytes), kPages * kPage);
  EXPECT_EQ(Resident(bytes.data()), 64);
  file->Release(bytes.subspan(1, 5 * kPage));  // Page 0 and page 5 are only partly in it.
  EXPECT_EQ(Resident(bytes.data()), 48);
  file->Release(bytes.subspan(8 * kPage + 1, kPage));
  file->Release(bytes.subspan(9, 9));
  EXPECT_EQ(Resident(bytes.data()), 48);
  EXPECT_EQ(Letters(bytes), kPages * kPage);
  EXPECT_EQ(Resident(bytes.data()), 64);
}

TEST_F(MappedFileTest, AFileThatIsOpenedLaterIsWhole) {
  {
    const auto file = Open(WhenLost::kZeros);
    std::filesystem::resize_file(path_, kPage);
    EXPECT_EQ(Letters(file->bytes()), kPage);
    EXPECT_TRUE(*file->lost());
  }
  const auto again = Open(WhenLost::kZeros);
  EXPECT_EQ(Letters(again->bytes()), kPage);
  EXPECT_FALSE(*again->lost());
}

TEST_F(MappedFileTest, ManyThreadsLoseTheSame) {
  const auto file = Open(WhenLost::kZeros);
  std::filesystem::resize_file(path_, 0);
  std::vector<std::thread> readers;
  std::vector<std::ptrdiff_t> letters(4, -1);
  for (std::ptrdiff_t& count : letters) {
    readers.emplace_back([&count, &file] { count = Letters(file->bytes()); });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_THAT(letters, ::testing::Each(0));
}

TEST_F(MappedFileTest, EndsWithASentenceWhereNothingMayBeComputedFromIt) {
  const auto file = Open(WhenLost::kEnd);
  std::filesystem::resize_file(path_, kPage);
  EXPECT_EQ(Letters(file->bytes().first(kPage)), kPage);
  EXPECT_EXIT(std::exit(static_cast<int>(Letters(file->bytes()))), ::testing::ExitedWithCode(1),
              "foretoken: .*/file: lost part of its content");
}

TEST_F(MappedFileTest, OtherBusErrorsAreNotItsBusiness) {
  const auto file = Open(WhenLost::kZeros);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // They have handlers.
  EXPECT_EXIT(std::raise(SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
#endif
}

}  // namespace
}  // namespace foretoken
