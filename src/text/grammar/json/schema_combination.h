#pragma once

#include "json/json.h"

#include "text/grammar/json/schema_document.h"

namespace foretoken {

/// Whether it can be seen that no value matches both schemas: they differ in type, in the values
/// that they list, or are objects that a required property tells apart.
bool Disjoint(const Json& left, const Json& right, SchemaDocument* document);

}  // namespace foretoken
