#pragma once

#include <fmt/core.h>

#include <utility>

#include "base/check.h"
#include "foretoken/result.h"

namespace foretoken {

/// Errors of three kinds with a sentence that fmt::format makes of `format` and `args`.
template <typename... Args>
Error Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return InvalidInput(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Error Unavailable(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::kUnavailable, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Error InternalError(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::kInternal, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace foretoken

#define FT_CONCAT_INNER(a, b) a##b
#define FT_CONCAT(a, b) FT_CONCAT_INNER(a, b)

/// Returns the error of a `Status` or `Result` expression from the enclosing function.
#define FT_RETURN_IF_ERROR(expression)                    \
  do {                                                    \
    if (auto ft_status = (expression); !ft_status.ok()) { \
      return ft_status.error();                           \
    }                                                     \
  } while (false)

/// `FT_ASSIGN_OR_RETURN(auto x, F())`: binds the value of a `Result` or returns its error.
#define FT_ASSIGN_OR_RETURN(declaration, expression)   \
  auto FT_CONCAT(ft_result_, __LINE__) = (expression); \
  if (!FT_CONCAT(ft_result_, __LINE__).ok()) {         \
    return FT_CONCAT(ft_result_, __LINE__).error();    \
  }                                                    \
  declaration = std::move(FT_CONCAT(ft_result_, __LINE__)).value()
