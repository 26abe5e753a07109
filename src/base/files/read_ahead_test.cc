#include "base/files/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

constexpr std::size_t kBytes = 8 << 20;

std::size_t PagesInMemory(std::span<const std::byte> mapped) {
  const std::size_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> there(mapped.size() / page);
  EXPECT_EQ(mincore(const_cast<std::byte*>(mapped.data()), mapped.size(), there.data()), 0);
  return std::ranges::count_if(there, [](unsigned char flags) { return flags % 2 == 1; });
}

// On a disk, since files in memory are always there.
TEST(ReadAhead, FetchesWhatIsNotInMemory) {
  std::string name = "read_ahead_test.XXXXXX";
  const int descriptor = mkstemp(name.data());
  ASSERT_GE(descriptor, 0);
  const std::string content(kBytes, 'x');
  ASSERT_EQ(write(descriptor, content.data(), kBytes), static_cast<ssize_t>(kBytes));
  fsync(descriptor);
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  close(descriptor);
  const auto file = MappedFile::Open(name);
  unlink(name.c_str());
  ASSERT_TRUE(file.ok());
  const std::span<const std::byte> all = (*file)->bytes();
  const std::size_t before = PagesInMemory(all);
  const std::size_t pages = kBytes / Size(sysconf(_SC_PAGESIZE));
  if (before > pages / 8) GTEST_SKIP() << "the file system keeps its files in memory";
  ReadAhead(all.subspan(100, kBytes / 2));  // From within a page.
  for (int i = 0; i < 500 && PagesInMemory(all) < pages / 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(PagesInMemory(all), pages / 4);
  EXPECT_EQ(std::ranges::count(all, std::byte{'x'}), static_cast<std::ptrdiff_t>(kBytes));
}

}  // namespace
}  // namespace foretoken
