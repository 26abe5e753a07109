#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace foretoken {

void FailCheck(std::string_view condition, const char* file, int line, const std::string& message) {
  fmt::print(stderr, "foretoken: invariant broken at {}:{}: {} {}\n", file, line, condition,
             message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace foretoken
