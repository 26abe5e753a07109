#include "text/grammar/json/schema_keywords.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "text/grammar/grammar.h"

namespace foretoken {
namespace {

const char* const kAnnotations[] = {"title",
                                    "description",
                                    "default",
                                    "examples",
                                    "example",
                                    "$schema",
                                    "$id",
                                    "id",
                                    "$comment",
                                    "$defs",
                                    "definitions",
                                    "deprecated",
                                    "readOnly",
                                    "writeOnly",
                                    "$anchor",
                                    "discriminator",
                                    "contentEncoding",
                                    "contentMediaType",
                                    "$vocabulary",
                                    "contentSchema",
                                    "additionalItems",
                                    "markdownDescription",
                                    "deprecationMessage",
                                    "errorMessage",
                                    "defaultSnippets"};

// What the value of a keyword must be.
enum class Shape {
  kAny,
  kList,
  kSchema,
  kSchemas,
  kSchemaMap,
  kNames,
  kNameMap,
  kDependencies,
  kText,
  kNumber,
  kFlag
};

struct Keyword {
  const char* name;
  Shape shape;
};

const Keyword kKeywords[] = {{"$ref", Shape::kText},
                             {"const", Shape::kAny},
                             {"enum", Shape::kList},
                             {"type", Shape::kAny},
                             {"nullable", Shape::kFlag},
                             {"anyOf", Shape::kSchemas},
                             {"oneOf", Shape::kSchemas},
                             {"allOf", Shape::kSchemas},
                             {"not", Shape::kSchema},
                             {"if", Shape::kSchema},
                             {"then", Shape::kSchema},
                             {"else", Shape::kSchema},
                             {"properties", Shape::kSchemaMap},
                             {"patternProperties", Shape::kSchemaMap},
                             {"additionalProperties", Shape::kSchema},
                             {"propertyNames", Shape::kSchema},
                             {"required", Shape::kNames},
                             {"dependentRequired", Shape::kNameMap},
                             {"dependentSchemas", Shape::kSchemaMap},
                             {"dependencies", Shape::kDependencies},
                             {"minProperties", Shape::kNumber},
                             {"maxProperties", Shape::kNumber},
                             {"items", Shape::kSchema},
                             {"prefixItems", Shape::kSchemas},
                             {"contains", Shape::kSchema},
                             {"minContains", Shape::kNumber},
                             {"maxContains", Shape::kNumber},
                             {"minItems", Shape::kNumber},
                             {"maxItems", Shape::kNumber},
                             {"uniqueItems", Shape::kFlag},
                             {"minLength", Shape::kNumber},
                             {"maxLength", Shape::kNumber},
                             {"pattern", Shape::kText},
                             {"format", Shape::kText},
                             {"minimum", Shape::kNumber},
                             {"maximum", Shape::kNumber},
                             {"exclusiveMinimum", Shape::kNumber},
                             {"exclusiveMaximum", Shape::kNumber},
                             {"multipleOf", Shape::kNumber}};

bool IsSchema(const Json& value) { return value.is_object() || value.is_boolean(); }

bool IsNames(const Json& value) {
  return value.is_array() &&
         std::ranges::all_of(value, [](const Json& name) { return name.is_string(); });
}

// Says what the value should be where it is not; nullptr where it is.
const char* Complaint(Shape shape, const Json& value) {
  switch (shape) {
    case Shape::kAny:
      return nullptr;
    case Shape::kList:
      return value.is_array() ? nullptr : "a list of values";
    case Shape::kSchema:
      return IsSchema(value) ? nullptr : "a schema: an object, true or false";
    case Shape::kSchemas:
      return value.is_array() && std::ranges::all_of(value, IsSchema) ? nullptr
                                                                      : "a list of schemas";
    case Shape::kSchemaMap:
      return value.is_object() && std::ranges::all_of(value, IsSchema)
                 ? nullptr
                 : "an object whose values are schemas";
    case Shape::kNames:
      return IsNames(value) ? nullptr : "a list of names";
    case Shape::kNameMap:
      return value.is_object() && std::ranges::all_of(value, IsNames)
                 ? nullptr
                 : "an object whose values are lists of names";
    case Shape::kDependencies:
      return value.is_object() && std::ranges::all_of(value,
                                                      [](const Json& wanted) {
                                                        return IsSchema(wanted) || IsNames(wanted);
                                                      })
                 ? nullptr
                 : "an object whose values are schemas or lists of names";
    case Shape::kText:
      return value.is_string() ? nullptr : "a text";
    case Shape::kNumber:
      return value.is_number() ? nullptr : "a number";
    case Shape::kFlag:
      return value.is_boolean() ? nullptr : "true or false";
  }
  return nullptr;
}

ValueTypes TypeNamed(std::string_view name) {
  constexpr std::pair<const char*, ValueTypes> kTypes[] = {
      {"null", kNullType},     {"boolean", kBooleanType}, {"object", kObjectType},
      {"array", kArrayType},   {"string", kStringType},   {"number", kNumberTypes},
      {"integer", kWholeType},
  };
  for (const auto& [known, types] : kTypes) {
    if (name == known) return types;
  }
  return 0;
}

}  // namespace

ValueTypes TypeOf(const Json& value) {
  if (value.is_number_float() && std::floor(value.get<double>()) != value.get<double>()) {
    return kFractionType;
  }
  return value.is_number()    ? kWholeType
         : value.is_string()  ? kStringType
         : value.is_object()  ? kObjectType
         : value.is_array()   ? kArrayType
         : value.is_boolean() ? kBooleanType
                              : kNullType;
}

ValueTypes TypesOf(const Json& schema, const SchemaDocument& document) {
  const auto found = schema.find("type");
  if (found == schema.end()) return kAllTypes;
  ValueTypes types = 0;
  for (const Json& type : found->is_array() ? *found : Json::array({*found})) {
    const ValueTypes named = type.is_string() ? TypeNamed(type.text()) : 0;
    if (named == 0) document.Refuse(schema, fmt::format("the type {} is not known", type.dump()));
    types |= named;
  }
  if (types == 0) document.Refuse(schema, "'type' lists no type");
  if (schema.value("nullable", false)) types |= kNullType;
  return types;
}

bool IsAnnotation(std::string_view keyword) {
  return keyword.starts_with("x-") ||
         std::ranges::find(kAnnotations, keyword) != std::end(kAnnotations);
}

void CheckKeywords(const Json& schema, const SchemaDocument& document) {
  const auto dialect = schema.find("$schema");
  if (dialect != schema.end() && dialect->dump().find("json-schema.org/") == std::string::npos) {
    document.Refuse(schema, fmt::format("the '$schema' {} is not supported", dialect->dump()));
  }
  for (const auto& [keyword, value] : schema.items()) {
    if (IsAnnotation(keyword)) continue;
    const auto* const known = std::ranges::find(kKeywords, keyword, &Keyword::name);
    if (known == std::end(kKeywords)) {
      document.Refuse(schema, fmt::format("the keyword '{}' is not supported", keyword));
    }
    if (const char* const wanted = Complaint(known->shape, value)) {
      document.Refuse(schema, fmt::format("'{}' must be {}", keyword, wanted));
    }
  }
}

bool HasOnly(const Json& schema, std::string_view only) {
  return schema.contains(only) &&
         std::ranges::all_of(schema.items(), [&](const Json::Member& item) {
           return item.first == only || IsAnnotation(item.first);
         });
}

int SchemaCount(const Json& schema, const char* keyword, const SchemaDocument& document) {
  const auto value = schema[keyword].get<double>();
  if (value < 0 || std::floor(value) != value) {
    document.Refuse(schema, fmt::format("'{}' must be a whole number from 0 on", keyword));
  }
  return static_cast<int>(std::min<double>(value, kMaxRepetitions + 1));
}

std::optional<std::vector<Json>> ListedValues(const Json& schema) {
  if (schema.is_object() && schema.contains("const")) return std::vector<Json>{schema["const"]};
  if (!schema.is_object() || !schema.contains("enum") || !schema["enum"].is_array()) return {};
  return std::vector<Json>(schema["enum"].begin(), schema["enum"].end());
}

}  // namespace foretoken
