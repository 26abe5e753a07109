#include "apps/foretoken/server/observe/hidden_folders.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

TEST(WithoutFolders, LeavesNames) {
  EXPECT_EQ(WithoutFolders("cannot write '/var/lib/ft/alice/log-1': No space left on device"),
            "cannot write 'log-1': No space left on device");
  EXPECT_EQ(WithoutFolders("cannot write /var/lib/ft/log-1: No space left"),
            "cannot write log-1: No space left");
  EXPECT_EQ(WithoutFolders("'a folder/with spaces/x' and (/y/z) are gone."),
            "'x' and (z) are gone.");
  EXPECT_EQ(WithoutFolders("look into /var/log/ft."), "look into ft.");
}

TEST(WithoutFolders, LeavesWhatIsNoPath) {
  for (const char* sentence : {"", "1 / 2 tokens/s", "it's gone", "'quoted' and 'again'"}) {
    EXPECT_EQ(WithoutFolders(sentence), sentence);
  }
}

}  // namespace
}  // namespace foretoken::server
