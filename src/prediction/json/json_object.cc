#include "prediction/json/json_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace foretoken {
namespace {

using Json = JsonObject::Json;

constexpr std::size_t kMaxText = 256;

// A value as errors show it: short, and printable whatever the file holds.
std::string Show(const Json& json) {
  constexpr std::size_t kShown = 40;
  std::string text = json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

}  // namespace

JsonObject::JsonObject(const Json* json, std::string place, Status* status)
    : json_(json), place_(std::move(place)), status_(status) {
  if (json_ != nullptr && !json_->is_object()) {
    Refuse(fmt::format("is {} but must be an object", Show(*json_)));
    json_ = nullptr;
  }
}

void JsonObject::Close() {
  if (json_ == nullptr) return;
  for (const auto& [name, value] : json_->items()) {
    if (!known_.contains(name)) Refuse("has an unknown field " + Show(Json(name)));
  }
}

bool JsonObject::Has(const char* name) {
  known_.insert(name);
  return json_ != nullptr && json_->contains(name);
}

std::string JsonObject::Text(const char* name, std::initializer_list<std::string_view> choices) {
  const Json* json = Find(name);
  if (json == nullptr) return {};
  const auto* text = json->get_ptr<const std::string*>();
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (text == nullptr || text->empty() || text->size() > kMaxText ||
      std::ranges::any_of(*text, control)) {
    RefuseField(name, *json, fmt::format("a line of 1 to {} bytes", kMaxText));
  } else if (choices.size() > 0 && std::ranges::find(choices, *text) == choices.end()) {
    RefuseField(name, *json, fmt::format("one of {}", fmt::join(choices, ", ")));
  } else {
    return *text;
  }
  return {};
}

std::string JsonObject::Fingerprint(const char* name) {
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kMost = 64;
  const std::string text = Text(name);
  const bool hexadecimal = text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (status_->ok() && (!hexadecimal || text.size() < kLeast || text.size() > kMost)) {
    RefuseField(name, Json(text),
                fmt::format("{} to {} lower-case hexadecimal digits", kLeast, kMost));
  }
  return text;
}

int JsonObject::Integer(const char* name, int low, int high) {
  const Json* json = Find(name);
  return json == nullptr ? low : AsInteger(name, *json, low, high);
}

double JsonObject::Number(const char* name, double low, double high) {
  const Json* json = Find(name);
  return json == nullptr ? low : AsNumber(name, *json, low, high);
}

std::vector<int> JsonObject::Integers(const char* name, std::size_t most, int low, int high) {
  std::vector<int> values;
  for (const Json& item : List(name, most)) values.push_back(AsInteger(name, item, low, high));
  return values;
}

std::vector<double> JsonObject::Numbers(const char* name, std::size_t most, double low,
                                        double high) {
  std::vector<double> values;
  for (const Json& item : List(name, most)) values.push_back(AsNumber(name, item, low, high));
  return values;
}

std::vector<JsonObject> JsonObject::Objects(const char* name, std::size_t most) {
  std::vector<JsonObject> objects;
  for (const Json& item : List(name, most)) {
    objects.push_back({&item, fmt::format("{}[{}]", Path(name), objects.size()), status_});
  }
  return objects;
}

void JsonObject::Refuse(const std::string& what) {
  if (status_->ok()) *status_ = InvalidInput(fmt::format("{} {}", place_, what));
}

const JsonObject::Json* JsonObject::Find(const char* name) {
  known_.insert(name);
  if (json_ == nullptr || !status_->ok()) return nullptr;
  const auto found = json_->find(name);
  if (found != json_->end()) return &*found;
  Refuse(fmt::format("lacks the field \"{}\"", name));
  return nullptr;
}

const JsonObject::Json& JsonObject::List(const char* name, std::size_t most) {
  static const Json kEmpty = Json::array();
  const Json* json = Find(name);
  if (json == nullptr) return kEmpty;
  if (json->is_array() && json->size() <= most) return *json;
  RefuseField(name, *json, fmt::format("a list of at most {} items", most));
  return kEmpty;
}

int JsonObject::AsInteger(const char* name, const Json& json, int low, int high) {
  if (json.is_number_integer()) {
    const bool huge = json.is_number_unsigned() && json.get<std::uint64_t>() > INT32_MAX;
    const std::int64_t value = huge ? INT64_MAX : json.get<std::int64_t>();
    if (value >= low && value <= high) return static_cast<int>(value);
  }
  RefuseField(name, json, fmt::format("a whole number from {} to {}", low, high));
  return low;
}

double JsonObject::AsNumber(const char* name, const Json& json, double low, double high) {
  if (json.is_number()) {
    const auto value = json.get<double>();
    if (value >= low && value <= high) return value;
  }
  RefuseField(name, json, fmt::format("a number from {} to {}", low, high));
  return low;
}

void JsonObject::RefuseField(const char* name, const Json& json, const std::string& wanted) {
  if (status_->ok()) {
    *status_ =
        InvalidInput(fmt::format("{}: {} is {} but must be {}", place_, name, Show(json), wanted));
  }
}

std::string JsonObject::Path(const char* name) const { return fmt::format("{}: {}", place_, name); }

}  // namespace foretoken
