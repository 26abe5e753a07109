#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace foretoken {

// Grammar text for the values of a schema of one type. Throw SchemaRefusal for what is not
// supported.

/// A number within the schema's bounds.
std::string NumberBody(bool integer, const nlohmann::ordered_json& schema, const std::string& path);

/// A string of the schema's pattern, format or length.
std::string StringBody(const nlohmann::ordered_json& schema, const std::string& path);

}  // namespace foretoken
