#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

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
  /// The option or field at fault, as the public headers spell it ("lookahead"); empty where it is
  /// none of them.
  std::string field = {};
};

/// Shorthand for the common case of a bad input.
inline Error InvalidInput(std::string message, std::string field = {}) {
  return Error{ErrorCode::kInvalidInput, std::move(message), std::move(field)};
}

/// A value of `T` or an `Error`. Crosses every boundary (files, requests, network, processes).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }

  /// The value; throws std::logic_error when `!ok()`, which is a programming error.
  T& value() & {
    Require();
    return std::get<0>(state_);
  }
  const T& value() const& {
    Require();
    return std::get<0>(state_);
  }
  T&& value() && {
    Require();
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  void Require() const {
    if (!ok()) throw std::logic_error("value() of a failed Result: " + error().message);
  }

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
