#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace foretoken {

/// What `object` has under `key`; null where it has nothing or is no object.
inline const nlohmann::json& Field(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

/// A string; empty where `value` is none.
inline std::string Text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// A boolean; `otherwise` where `value` is none.
inline bool Flag(const nlohmann::json& value, bool otherwise = false) {
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

}  // namespace foretoken
