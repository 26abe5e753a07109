#include "json/json_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace foretoken {
namespace {

constexpr std::size_t kMaxText = 256;

// A value as errors show it: short, and printable whatever the file holds.
std::string Show(const Json& json) {
  constexpr std::size_t kShown = 40;
  std::string text = json.DumpAscii();
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

}  // namespace

JsonObject::JsonObject(const Json* json, std::string place, Status* status)
    : json_(json), place_(std::move(place)), status_(status) {
  if (json_ != nullptr && !json_->is_object()) {
    Refuse("is {} but must be an object", Show(*json_));
    json_ = nullptr;
  }
}

void JsonObject::Close() {
  if (json_ == nullptr) return;
  for (const auto& [name, value] : json_->items()) {
    if (!value.is_null() && std::ranges::find(known_, name) == known_.end()) RefuseUnknown(name);
  }
}

const Json* JsonObject::Find(std::string_view name) {
  known_.push_back(name);
  if (json_ == nullptr || !status_->ok()) return nullptr;
  const auto found = json_->find(name);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

bool JsonObject::Bool(std::string_view name, bool* value) {
  const Json* json = Find(name);
  if (json == nullptr) return false;
  if (json->is_boolean()) {
    *value = json->get<bool>();
  } else {
    RefuseValue(name, *json, "true or false");
  }
  return ok();
}

bool JsonObject::Int(std::string_view name, int low, int high, int* value) {
  const Json* json = Find(name);
  if (json == nullptr) return false;
  const int read = AsInteger(name, *json, low, high);
  if (ok()) *value = read;
  return ok();
}

bool JsonObject::Number(std::string_view name, double low, double high, double* value) {
  const Json* json = Find(name);
  if (json == nullptr) return false;
  const double read = AsNumber(name, *json, low, high);
  if (ok()) *value = read;
  return ok();
}

bool JsonObject::String(std::string_view name, std::string* value) {
  const Json* json = Find(name);
  if (json == nullptr) return false;
  if (json->is_string()) {
    *value = json->text();
  } else {
    RefuseValue(name, *json, "a string");
  }
  return ok();
}

std::string JsonObject::Text(std::string_view name,
                             std::initializer_list<std::string_view> choices) {
  const Json* json = Require(name);
  if (json == nullptr) return {};
  const std::string* text = json->is_string() ? &json->text() : nullptr;
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (text == nullptr || text->empty() || text->size() > kMaxText ||
      std::ranges::any_of(*text, control)) {
    RefuseValue(name, *json, fmt::format("a line of 1 to {} bytes", kMaxText));
  } else if (choices.size() > 0 && std::ranges::find(choices, *text) == choices.end()) {
    RefuseValue(name, *json, fmt::format("one of {}", fmt::join(choices, ", ")));
  } else {
    return *text;
  }
  return {};
}

std::string JsonObject::Fingerprint(std::string_view name) {
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kMost = 64;
  const std::string text = Text(name);
  const bool hexadecimal = text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (ok() && (!hexadecimal || text.size() < kLeast || text.size() > kMost)) {
    RefuseValue(name, text, fmt::format("{} to {} lower-case hexadecimal digits", kLeast, kMost));
  }
  return text;
}

int JsonObject::Integer(std::string_view name, int low, int high) {
  const Json* json = Require(name);
  return json == nullptr ? low : AsInteger(name, *json, low, high);
}

double JsonObject::Number(std::string_view name, double low, double high) {
  const Json* json = Require(name);
  return json == nullptr ? low : AsNumber(name, *json, low, high);
}

std::vector<int> JsonObject::Integers(std::string_view name, std::size_t most, int low, int high) {
  std::vector<int> values;
  for (const Json& item : List(name, most)) values.push_back(AsInteger(name, item, low, high));
  return values;
}

std::vector<double> JsonObject::Numbers(std::string_view name, std::size_t most, double low,
                                        double high) {
  std::vector<double> values;
  for (const Json& item : List(name, most)) values.push_back(AsNumber(name, item, low, high));
  return values;
}

std::vector<JsonObject> JsonObject::Objects(std::string_view name, std::size_t most) {
  std::vector<JsonObject> objects;
  for (const Json& item : List(name, most)) {
    objects.push_back({&item, fmt::format("{}[{}]", Path(name), objects.size()), status_});
  }
  return objects;
}

void JsonObject::Refuse(const std::string& what) {
  if (ok()) *status_ = Invalid("{} {}", place_, what);
}

void JsonObject::RefuseValue(std::string_view name, const Json& json, const std::string& wanted) {
  if (!ok()) return;
  *status_ = Invalid("{} is {} but must be {}", Path(name), Show(json), wanted);
}

void JsonObject::RefuseMissing(std::string_view name) { Refuse("lacks the field \"{}\"", name); }

void JsonObject::RefuseUnknown(std::string_view name) {
  Refuse("has an unknown field " + Show(Json(name)));
}

std::string JsonObject::Path(std::string_view name) const {
  return fmt::format("{}: {}", place_, name);
}

const Json* JsonObject::Require(std::string_view name) {
  const Json* json = Find(name);
  if (json == nullptr) RefuseMissing(name);
  return json;
}

const Json& JsonObject::List(std::string_view name, std::size_t most) {
  static const Json kEmpty = Json::array();
  const Json* json = Require(name);
  if (json == nullptr) return kEmpty;
  if (json->is_array() && json->size() <= most) return *json;
  RefuseValue(name, *json, fmt::format("a list of at most {} items", most));
  return kEmpty;
}

int JsonObject::AsInteger(std::string_view name, const Json& json, int low, int high) {
  if (json.is_number_integer()) {
    const bool huge = json.is_number_unsigned() && json.get<std::uint64_t>() > INT32_MAX;
    const std::int64_t value = huge ? INT64_MAX : json.get<std::int64_t>();
    if (value >= low && value <= high) return value;
  }
  RefuseValue(name, json, fmt::format("{} from {} to {}", integer_, low, high));
  return low;
}

double JsonObject::AsNumber(std::string_view name, const Json& json, double low, double high) {
  if (json.is_number()) {
    const auto value = json.get<double>();
    if (value >= low && value <= high) return value;
  }
  RefuseValue(name, json, fmt::format("a number from {} to {}", low, high));
  return low;
}

}  // namespace foretoken
