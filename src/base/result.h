#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace foretoken {

/// What kind of failure an `Error` reports; decides the exit code and the HTTP status.
enum class ErrorCode {
  kInvalidInput,  ///< The caller gave something wrong: a bad file, option or request.
  kUnavailable,   ///< A resource is exhausted or a peer is gone; the same call may work later.
  kCancelled,     ///< The caller asked to stop.
  kInternal,      ///< Our own mistake.
};

/// A failure with one clear sentence: what was wrong, where, and what would be right.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

/// Shorthand for the common case of a bad input.
inline Error InvalidInput(std::string message) {
  return Error{ErrorCode::kInvalidInput, std::move(message)};
}

/// A value of `T` or an `Error`. Crosses every boundary (files, requests, network, processes).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }

  /// The value; it is a programming error to ask for it when `!ok()`.
  T& value() & {
    FT_CHECK(ok(), "value() of a failed Result: {}", error().message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    FT_CHECK(ok(), "value() of a failed Result: {}", error().message);
    return std::get<0>(state_);
  }
  T&& value() && {
    FT_CHECK(ok(), "value() of a failed Result: {}", error().message);
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success or an `Error`.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

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
