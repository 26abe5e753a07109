#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace foretoken {

/// Prints the failed invariant with its place and aborts. For programming errors only; a bad input
/// is an `Error` (base/result.h).
[[noreturn]] void FailCheck(std::string_view condition, const char* file, int line,
                            const std::string& message);

}  // namespace foretoken

/// `FT_CHECK(cond, "format {}", args...)`: an invariant that holds in every build.
#define FT_CHECK(condition, ...)                                                             \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      ::foretoken::FailCheck(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                        \
  } while (false)
