#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

/// A JSON object of a file, read field by field. The first thing that is wrong, anywhere in the
/// file, is kept in `status` with its place, and everything after it reads as defaults: a parser is
/// a list of fields. Ranges are inclusive; only finite numbers are in any.
class JsonObject {
 public:
  using Json = nlohmann::ordered_json;

  /// `json` (null: reads as nothing) and `status` outlive it.
  JsonObject(const Json* json, std::string place, Status* status);

  /// Call when all fields have been read: any other one is a mistake.
  void Close();

  /// Whether an optional field is there.
  bool Has(const char* name);

  JsonObject Child(const char* name) { return {Find(name), Path(name), status_}; }
  /// A line of a few words; of `choices` where there are any.
  std::string Text(const char* name, std::initializer_list<std::string_view> choices = {});
  /// 8 to 64 lower-case hexadecimal digits.
  std::string Fingerprint(const char* name);
  int Integer(const char* name, int low, int high);
  double Number(const char* name, double low, double high);
  std::vector<int> Integers(const char* name, std::size_t most, int low, int high);
  std::vector<double> Numbers(const char* name, std::size_t most, double low, double high);
  /// The elements of an array of objects.
  std::vector<JsonObject> Objects(const char* name, std::size_t most);

  /// "<place> <what>", if nothing was wrong before.
  void Refuse(const std::string& what);
  bool ok() const { return status_->ok(); }

 private:
  // Null where something was wrong before, or is now.
  const Json* Find(const char* name);
  const Json& List(const char* name, std::size_t most);
  int AsInteger(const char* name, const Json& json, int low, int high);
  double AsNumber(const char* name, const Json& json, double low, double high);
  void RefuseField(const char* name, const Json& json, const std::string& wanted);
  std::string Path(const char* name) const;

  const Json* json_;
  std::string place_;
  Status* status_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace foretoken
