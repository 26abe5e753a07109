#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken::server {

/// Parses a JSON text without exceptions; refuses what is nested deeper than `kMaxJsonDepth`, and
/// objects that have a member twice.
inline constexpr int kMaxJsonDepth = 64;
Result<nlohmann::json> ParseJson(std::string_view text);

/// The first thing wrong with a request's fields.
struct FieldError {
  std::string message;  ///< Empty: nothing is wrong.
  std::string field;    ///< As OpenAI's `param`: "stream_options.include_usage".

  bool ok() const { return message.empty(); }
};

/// Reads the fields of one JSON object by name. A field that is absent or null keeps its variable's
/// value; one of another kind or range is noted in the FieldError, the first one stays. At the end
/// RefuseOthers() notes the fields that nobody asked for, so that nothing is ignored silently.
class FieldReader {
 public:
  /// `object` and `error` outlive the reader. `path` comes before the fields' names in errors, as
  /// in "stream_options.".
  FieldReader(const nlohmann::json& object, std::string path, FieldError* error);

  /// Null where the field is absent or null. Counts as asked for.
  const nlohmann::json* Find(std::string_view name);

  // Each returns whether the field was there and good.
  bool Bool(std::string_view name, bool* value);
  bool Int(std::string_view name, std::int64_t low, std::int64_t high, int* value);
  bool Seed(std::string_view name, std::uint64_t* value);
  bool Number(std::string_view name, float* value);
  bool String(std::string_view name, std::string* value);

  /// Notes that a field is not what it must be: "'NAME' must be WHAT".
  void Refuse(std::string_view name, std::string_view must_be);
  /// Notes a sentence about a field.
  void Fail(std::string_view name, std::string message);
  void RefuseOthers();

  bool ok() const { return error_->ok(); }

 private:
  const nlohmann::json& object_;
  const std::string path_;
  FieldError* error_;
  std::vector<std::string_view> asked_;
};

}  // namespace foretoken::server
