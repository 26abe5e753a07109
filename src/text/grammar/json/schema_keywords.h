#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "text/grammar/json/schema_document.h"

namespace foretoken {

// What the keywords of one schema say. All refuse what is not supported.

/// Kinds of JSON values, as a set. Whole numbers are kept apart from others.
using ValueTypes = unsigned;
inline constexpr ValueTypes kNullType = 1;
inline constexpr ValueTypes kBooleanType = 2;
inline constexpr ValueTypes kObjectType = 4;
inline constexpr ValueTypes kArrayType = 8;
inline constexpr ValueTypes kStringType = 16;
inline constexpr ValueTypes kWholeType = 32;
inline constexpr ValueTypes kFractionType = 64;
inline constexpr ValueTypes kNumberTypes = kWholeType | kFractionType;
inline constexpr ValueTypes kAllTypes = 127;

/// The type of a value.
ValueTypes TypeOf(const Json& value);

/// The types that "type" (and "nullable") of a schema name; all of them where it has none.
ValueTypes TypesOf(const Json& schema, const SchemaDocument& document);

/// Whether a keyword says nothing about which texts match, like "title".
bool IsAnnotation(std::string_view keyword);

/// Refuses keywords that are not supported, and values that a keyword may not have.
void CheckKeywords(const Json& schema, const SchemaDocument& document);

/// Whether a schema has no keywords but `only` and annotations.
bool HasOnly(const Json& schema, std::string_view only);

/// What a keyword that the schema has counts: characters, items and the like. One more than
/// kMaxRepetitions stands for all above it.
int SchemaCount(const Json& schema, const char* keyword, const SchemaDocument& document);

/// The values of `schema` where it lists them.
std::optional<std::vector<Json>> ListedValues(const Json& schema);

}  // namespace foretoken
