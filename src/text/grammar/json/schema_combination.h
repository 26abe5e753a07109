#pragma once

#include <nlohmann/json.hpp>

#include "text/grammar/json/schema_document.h"

namespace foretoken {

/// Whether it can be seen that no value matches both schemas: they differ in type, in the values
/// that they list, or are objects that a required property tells apart.
bool Disjoint(const nlohmann::ordered_json& left, const nlohmann::ordered_json& right,
              SchemaDocument* document);

}  // namespace foretoken
