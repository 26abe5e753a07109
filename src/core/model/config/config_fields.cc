#include "core/model/config/config_fields.h"

#include <cstdint>
#include <utility>

#include "base/text/printable.h"

namespace foretoken {

ConfigFields::ConfigFields(const Json* json, std::string where, Status* status)
    : JsonObject(json, std::move(where), status) {
  integer_ = "an integer";
}

void ConfigFields::Refuse(const std::string& what) {
  if (ok()) *status_ = Invalid("{}: {}", place_, what);
}

void ConfigFields::RefuseMissing(std::string_view name) { Refuse("lacks {}", name); }

ConfigFields ConfigFields::Within(const char* name) {
  const Json* json = Find(name);
  if (json != nullptr && !json->is_object()) {
    Refuse("{} must be null or an object", name);
    json = nullptr;
  }
  return {json, Path(name), status_};
}

std::vector<Token> ConfigFields::Tokens(const char* name, int vocabulary) {
  const Json* json = Find(name);
  if (json == nullptr) return {};
  std::vector<Token> tokens;
  const Json list = json->is_array() ? *json : Json::array({*json});
  for (const Json& item : list) {
    const bool huge = item.is_number_unsigned() && item.get<std::uint64_t>() > INT32_MAX;
    if (!item.is_number_integer() || huge || item.get<std::int64_t>() >= vocabulary) {
      Refuse("{} holds {} but must hold tokens below the vocabulary of {}", name,
             Printable(item.dump()), vocabulary);
      return {};
    }
    if (item.get<std::int64_t>() >= 0) tokens.push_back(item.get<Token>());
  }
  return tokens;
}

std::vector<std::string> ConfigFields::Strings(const char* name, std::size_t count) {
  const Json* json = Find(name);
  if (json == nullptr) return {};
  std::vector<std::string> strings;
  bool good = json->is_array() && json->size() == count;
  for (std::size_t i = 0; good && i < count; ++i) {
    good = (*json)[i].is_string();
    if (good) strings.push_back((*json)[i].get<std::string>());
  }
  if (!good) Refuse("{} must be a list of {} strings", name, count);
  return good ? strings : std::vector<std::string>();
}

int ConfigFields::IntOr(const char* name, int low, int high, int otherwise) {
  Int(name, low, high, &otherwise);
  return otherwise;
}

double ConfigFields::NumberOr(const char* name, double low, double high, double otherwise) {
  JsonObject::Number(name, low, high, &otherwise);
  return otherwise;
}

bool ConfigFields::IsNull(const char* name) const {
  return !empty() && json_->contains(name) && (*json_)[name].is_null();
}

bool ConfigFields::BoolOr(const char* name, bool otherwise) {
  Bool(name, &otherwise);
  return otherwise;
}

}  // namespace foretoken
