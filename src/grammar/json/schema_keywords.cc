#include "grammar/json/schema_keywords.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "grammar/grammar.h"
#include "grammar/json/schema_document.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

const char* const kAnnotations[] = {
    "title",    "description", "default",     "examples",   "example",  "$schema",  "$id",
    "$comment", "$defs",       "definitions", "deprecated", "readOnly", "writeOnly"};
const char* const kTypes[] = {"object", "array", "string", "number", "integer", "boolean", "null"};

bool IsOneOf(std::string_view name, const auto& names) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char* known) { return name == known; });
}

bool HasType(const Json& value, std::string_view type) {
  if (type == "number") return value.is_number();
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
  }
  return type == (value.is_object()    ? "object"
                  : value.is_array()   ? "array"
                  : value.is_string()  ? "string"
                  : value.is_boolean() ? "boolean"
                                       : "null") &&
         !value.is_number();
}

}  // namespace

bool IsAnnotation(std::string_view keyword) { return IsOneOf(keyword, kAnnotations); }

void CheckKeywords(const Json& schema, const std::string& path) {
  static const char* const kKnown[] = {"$ref",
                                       "const",
                                       "enum",
                                       "anyOf",
                                       "oneOf",
                                       "allOf",
                                       "type",
                                       "properties",
                                       "required",
                                       "items",
                                       "prefixItems",
                                       "additionalProperties",
                                       "minItems",
                                       "maxItems",
                                       "minLength",
                                       "maxLength",
                                       "pattern",
                                       "format",
                                       "minimum",
                                       "maximum",
                                       "nullable",
                                       "exclusiveMinimum",
                                       "exclusiveMaximum"};
  for (const auto& [keyword, value] : schema.items()) {
    const bool empty_demand =
        (keyword == "uniqueItems" && value == false) || (keyword == "minProperties" && value == 0);
    if (!IsOneOf(keyword, kKnown) && !IsAnnotation(keyword) && !empty_demand) {
      RefuseSchema(path, fmt::format("the keyword '{}' is not supported", keyword));
    }
  }
}

void CheckAlone(const Json& schema, std::string_view keyword, const std::string& path,
                std::initializer_list<std::string_view> others) {
  for (const auto& [name, value] : schema.items()) {
    if (name == keyword || IsAnnotation(name) ||
        std::find(others.begin(), others.end(), name) != others.end()) {
      continue;
    }
    RefuseSchema(path, fmt::format("'{}' beside '{}' is not supported", name, keyword));
  }
}

int SchemaCount(const Json& schema, const char* keyword, int otherwise, const std::string& path) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return otherwise;
  if (!found->is_number_unsigned() && !(found->is_number_integer() && *found >= 0)) {
    RefuseSchema(path, fmt::format("'{}' must be a whole number from 0 on", keyword));
  }
  if (*found > kMaxRepetitions) {
    RefuseSchema(path, fmt::format("'{}' may be {} at most", keyword, kMaxRepetitions));
  }
  return found->get<int>();
}

std::vector<std::string> TypesOf(const Json& schema, const std::string& path) {
  std::vector<std::string> types;
  const auto found = schema.find("type");
  if (found != schema.end()) {
    for (const Json& type : found->is_array() ? *found : Json::array({*found})) {
      if (!type.is_string() || !IsOneOf(type.get<std::string>(), kTypes)) {
        RefuseSchema(path, fmt::format("the type {} is not known", type.dump()));
      }
      types.push_back(type.get<std::string>());
    }
    if (types.empty()) RefuseSchema(path, "'type' lists no type");
  } else {
    // What the keywords speak of is what is meant.
    const std::pair<const char*, std::vector<const char*>> meant[] = {
        {"object", {"properties", "required", "additionalProperties"}},
        {"array", {"items", "prefixItems", "minItems", "maxItems"}},
        {"string", {"minLength", "maxLength", "pattern", "format"}},
        {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}}};
    for (const auto& [type, keywords] : meant) {
      const bool any = std::any_of(keywords.begin(), keywords.end(),
                                   [&](const char* name) { return schema.contains(name); });
      if (any) types.emplace_back(type);
    }
    if (types.empty()) types = {"object", "array", "string", "number", "boolean", "null"};
  }
  if (schema.value("nullable", Json(false)) == true) types.emplace_back("null");
  return types;
}

bool FitsType(const Json& value, const Json& schema, const std::string& path) {
  if (!schema.contains("type")) return true;
  const auto types = TypesOf(schema, path);
  return std::any_of(types.begin(), types.end(),
                     [&](const std::string& type) { return HasType(value, type); });
}

std::optional<std::vector<Json>> ListedValues(const Json& schema) {
  if (schema.is_object() && schema.contains("const")) return std::vector<Json>{schema["const"]};
  if (!schema.is_object() || !schema.contains("enum") || !schema["enum"].is_array()) return {};
  return std::vector<Json>(schema["enum"].begin(), schema["enum"].end());
}

}  // namespace foretoken
