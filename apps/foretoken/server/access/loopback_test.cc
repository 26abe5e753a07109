#include "apps/foretoken/server/access/loopback.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

TEST(IsLoopback, KnowsTheAddressesOfTheMachineItself) {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "[::1]",
                           "0:0:0:0:0:0:0:1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
}

TEST(IsLoopback, IsNotMisledByWhatANameBeginsWith) {
  for (const char* host :
       {"", "0.0.0.0", "::", "[]", "[", "128.0.0.1", "10.127.0.1", "127.", "127.evil.example",
        "127.0.0.1.evil.example", "127.0.0.1:80", "localhost.evil.example", "::1.evil.example"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace foretoken::server
