#include "base/files/replace_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <thread>
#include <vector>

#include "base/files/read_file.h"
#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReplaceFileTest : public ::testing::Test {
 protected:
  std::string Content() { return ReadFile(path_, 1 << 20).value(); }
  std::ptrdiff_t Files() {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "report.json";
};

TEST_F(ReplaceFileTest, ReplacesAndKeepsRights) {
  ASSERT_TRUE(ReplaceFile(path_, "a long first content").ok());
  EXPECT_EQ(Content(), "a long first content");
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  ASSERT_TRUE(ReplaceFile(path_, "short").ok());
  EXPECT_EQ(Content(), "short");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0640));
  EXPECT_EQ(Files(), 1) << "nothing is left beside it";
}

TEST_F(ReplaceFileTest, WhatFailsLeavesTheOldContent) {
  ASSERT_TRUE(ReplaceFile(path_, "old").ok());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = ReplaceFile(path_, std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr(path_.string()));
  EXPECT_EQ(Content(), "old");
  EXPECT_EQ(Files(), 1);
}

TEST_F(ReplaceFileTest, ALinkStaysALink) {
  ASSERT_TRUE(ReplaceFile(path_, "old").ok());
  const fs::path link = folder_.path() / "latest";
  fs::create_symlink("report.json", link);
  ASSERT_TRUE(ReplaceFile(link, "new").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(Content(), "new");
}

TEST_F(ReplaceFileTest, WhatIsNoFileIsWrittenDirectly) {
  EXPECT_TRUE(ReplaceFile("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const fs::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = ReadFile(pipe, 100).value(); });
  EXPECT_TRUE(ReplaceFile(pipe, "through").ok());
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(ReplaceFileTest, AnOpenFileIsWrittenOn) {
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, "one,", 4), 4);
  EXPECT_TRUE(ReplaceFile("/dev/fd/" + std::to_string(file), "two,").ok());
  ASSERT_EQ(write(file, "three", 5), 5);
  close(file);
  EXPECT_EQ(Content(), "one,two,three");
}

TEST_F(ReplaceFileTest, NamesWhatCannotBeWritten) {
  for (const fs::path& path : {folder_.path() / "none" / "x", folder_.path()}) {
    const Status written = ReplaceFile(path, "x");
    ASSERT_FALSE(written.ok()) << path;
    EXPECT_THAT(written.error().message, HasSubstr("cannot write '" + path.string()));
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(ReplaceFileTest, WritersDoNotMix) {
  std::vector<std::thread> writers;
  for (const char c : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([this, c] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(ReplaceFile(path_, std::string(4000, c)).ok());
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Content(), std::string(4000, Content()[0]));
  EXPECT_EQ(Files(), 1);
}

}  // namespace
}  // namespace foretoken
