#pragma once

#include <fmt/core.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace foretoken {

/// A JSON object, read field by field. The first thing that is wrong, in it or in one beside or
/// within it, is kept in `status` with its place, and everything after it reads as absent: a parser
/// is a list of fields. Null counts as absent. Ranges are inclusive; only finite numbers are in
/// any. Derived classes say in words of their own what is wrong.
class JsonObject {
 public:
  /// `json` (null: reads as nothing), `status` and the names of fields outlive it.
  JsonObject(const Json* json, std::string place, Status* status);
  virtual ~JsonObject() = default;

  /// Call when all fields have been read: any other one is a mistake.
  void Close();

  /// Null where the field is absent.
  const Json* Find(std::string_view name);
  bool Has(std::string_view name) { return Find(name) != nullptr; }

  // Optional fields: each returns whether the field is there and good; else `value` stays.
  bool Bool(std::string_view name, bool* value);
  bool Int(std::string_view name, int low, int high, int* value);
  bool Number(std::string_view name, double low, double high, double* value);
  bool String(std::string_view name, std::string* value);

  // Fields that must be there.
  JsonObject Child(std::string_view name) { return {Require(name), Path(name), status_}; }
  /// A line of a few words; of `choices` where there are any.
  std::string Text(std::string_view name, std::initializer_list<std::string_view> choices = {});
  /// 8 to 64 lower-case hexadecimal digits.
  std::string Fingerprint(std::string_view name);
  int Integer(std::string_view name, int low, int high);
  double Number(std::string_view name, double low, double high);
  std::vector<int> Integers(std::string_view name, std::size_t most, int low, int high);
  std::vector<double> Numbers(std::string_view name, std::size_t most, double low, double high);
  /// The elements of an array of objects.
  std::vector<JsonObject> Objects(std::string_view name, std::size_t most);

  /// "<place> <what>", if nothing was wrong before.
  void Refuse(const std::string& what);
  template <typename Arg, typename... Args>
  void Refuse(fmt::format_string<Arg, Args...> format, Arg&& arg, Args&&... args) {
    Refuse(fmt::format(format, std::forward<Arg>(arg), std::forward<Args>(args)...));
  }
  bool ok() const { return status_->ok(); }

 protected:
  // What is wrong with a field: its value, that it is missing, that nobody knows it.
  virtual void RefuseValue(std::string_view name, const Json& json, const std::string& wanted);
  virtual void RefuseMissing(std::string_view name);
  virtual void RefuseUnknown(std::string_view name);

  std::string Path(std::string_view name) const;

  const Json* json_;
  std::string place_;
  Status* status_;
  std::string_view integer_ = "a whole number";  // As RefuseValue's readers know it.

 private:
  // Null where something was wrong before, or is now.
  const Json* Require(std::string_view name);
  const Json& List(std::string_view name, std::size_t most);
  int AsInteger(std::string_view name, const Json& json, int low, int high);
  double AsNumber(std::string_view name, const Json& json, double low, double high);

  std::vector<std::string_view> known_;
};

}  // namespace foretoken
