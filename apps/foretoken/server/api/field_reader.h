#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"
#include "json/json_object.h"

namespace foretoken::server {

/// Parses a JSON text without exceptions; refuses what is nested deeper than `kMaxJsonDepth`, and
/// objects that have a member twice.
inline constexpr int kMaxJsonDepth = 64;
Result<Json> ParseJson(std::string_view text);

/// Mends what other systems write into JSON texts: takes a byte order mark off, and puts U+FFFD in
/// the place of an escape that is half of a surrogate pair, as where a client cut a text within an
/// emoji.
void MendJson(std::string* text);

/// Reads the fields of one JSON object of a request by name. What is wrong is said as OpenAI does,
/// with the error's `field` as its `param`: "stream_options.include_usage". Close() notes the
/// fields that nobody asked for, so that nothing is ignored silently.
class FieldReader : public JsonObject {
 public:
  /// `name` is the object's own, as in "stream_options"; empty: the whole body. Fields that nobody
  /// knows enter `unknown`, or are refused where that is null or `strict`. What is known and left
  /// out enters it in any case.
  FieldReader(const Json& object, std::string name, Status* error,
              std::vector<std::string>* unknown, bool strict = false);
  /// The reader of `object`, the field `name`.
  FieldReader Inner(std::string_view name, const Json& object) const;
  /// The same, in which an unknown field is a mistake in any case: a wish that would be lost.
  FieldReader InnerStrict(std::string_view name, const Json& object) const;

  // Like those of JsonObject.
  bool Seed(std::string_view name, std::uint64_t* value);
  bool Number(std::string_view name, float low, float high, float* value);

  /// Notes that a field is not what it must be: "'NAME' must be WHAT".
  void Refuse(std::string_view name, std::string_view must_be);
  /// Notes that the field `name` asks for `what`, which this server leaves out.
  void LeaveOut(std::string_view name, std::string_view what);
  /// Notes a sentence about a field.
  void Fail(std::string_view name, std::string message);

 private:
  void RefuseValue(std::string_view name, const Json&, const std::string& wanted) override {
    Refuse(name, wanted);
  }
  void RefuseUnknown(std::string_view name) override;

  std::vector<std::string>* unknown_;
  bool strict_;
};

/// Reads a body, one JSON object, by `read(FieldReader*, Value*)`.
template <typename Value, typename Read>
Result<Value> ParseFields(std::string_view body, std::vector<std::string>* unknown,
                          const Read& read, bool strict = false) {
  FT_ASSIGN_OR_RETURN(const Json json, ParseJson(body));
  Status error;
  FieldReader fields(json, "", &error, unknown, strict);
  Value value;
  read(&fields, &value);
  fields.Close();
  FT_RETURN_IF_ERROR(error);
  return value;
}

}  // namespace foretoken::server
