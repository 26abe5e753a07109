#pragma once

#include <string>

#include "json/json.h"

namespace foretoken {

/// What `object` has under `key`; null where it has nothing or is no object.
inline const Json& Field(const Json& object, const char* key) { return object[key]; }

/// A string; empty where `value` is none.
inline std::string Text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// A boolean; `otherwise` where `value` is none.
inline bool Flag(const Json& value, bool otherwise = false) {
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

}  // namespace foretoken
