#pragma once

#include <string>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken {

/// A grammar (ParseGrammar's notation) for any JSON object.
std::string JsonObjectGrammar();

/// A grammar for JSON texts that match a JSON Schema (a JSON text itself). What it lets through is
/// always valid; it may be narrower than the schema (docs/do/constrain.md says where): for
/// instance, properties come in the order of their declaration. What cannot be turned into a
/// grammar is refused, by its name and place, in one sentence.
Result<std::string> JsonSchemaGrammar(std::string_view schema);

}  // namespace foretoken
