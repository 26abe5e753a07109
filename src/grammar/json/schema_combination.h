#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "grammar/json/schema_document.h"

namespace foretoken {

/// Objects that must match all schemas of an "allOf", and what stands beside it, as one schema.
/// Throws SchemaRefusal where they are no plain objects.
nlohmann::ordered_json MergeAllOf(const nlohmann::ordered_json& schema, const std::string& path,
                                  SchemaDocument* document);

/// Refuses (SchemaRefusal) a "oneOf" with two schemas that a value might match both of: they must
/// differ in type, in the values that they list, or be objects that a required property tells
/// apart.
void CheckDisjoint(const nlohmann::ordered_json& choices, const std::string& path,
                   SchemaDocument* document);

}  // namespace foretoken
