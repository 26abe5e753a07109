#include "grammar/json/schema_combination.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "grammar/json/schema_keywords.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

void MergeInto(Json* merged, const Json& part, const std::string& path, int depth,
               SchemaDocument* document) {
  const Json& schema = document->Dereference(part, path);
  if (!schema.is_object() || depth > kMaxSchemaDepth) {
    RefuseSchema(path, "'allOf' is supported for objects");
  }
  document->Spend(kSchemaStep + schema.size());
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword == "properties" && value.is_object()) {
      for (const auto& [name, property] : value.items()) {
        if ((*merged)["properties"].contains(name) && (*merged)["properties"][name] != property) {
          RefuseSchema(path,
                       fmt::format("two schemas of 'allOf' describe the property '{}'", name));
        }
        document->Spend(1 + (*merged)["properties"].size());
        (*merged)["properties"][name] = property;
      }
    } else if (keyword == "required" && value.is_array()) {
      for (const Json& name : value) (*merged)["required"].push_back(name);
    } else if (keyword == "allOf" && value.is_array()) {
      for (const Json& inner : value) MergeInto(merged, inner, path, depth + 1, document);
    } else if (!(keyword == "type" && value == "object") && !IsAnnotation(keyword)) {
      RefuseSchema(path, fmt::format("'{}' within 'allOf' is not supported: it is for objects with "
                                     "'properties' and 'required'",
                                     keyword));
    }
  }
}

bool ShareValue(const std::vector<Json>& a, const std::vector<Json>& b, SchemaDocument* document) {
  document->Spend(a.size() * b.size());
  return std::any_of(a.begin(), a.end(), [&](const Json& value) {
    return std::find(b.begin(), b.end(), value) != b.end();
  });
}

bool ToldApart(const Json& a, const Json& b, const std::string& path, SchemaDocument* document) {
  const auto required = [document](const Json& schema, const std::string& name) {
    const Json names = schema.value("required", Json::array());
    document->Spend(kSchemaStep + names.size());
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!a.contains("properties") || !b.contains("properties")) return false;
  for (const auto& [name, property] : a["properties"].items()) {
    if (!b["properties"].contains(name) || !required(a, name) || !required(b, name)) continue;
    const auto a_values = ListedValues(document->Dereference(property, path));
    const auto b_values = ListedValues(document->Dereference(b["properties"][name], path));
    if (a_values && b_values && !ShareValue(*a_values, *b_values, document)) return true;
  }
  return false;
}

// Whether no value can match both: other types, other listed values, or objects that a required
// property tells apart.
bool Disjoint(const Json& left, const Json& right, const std::string& path,
              SchemaDocument* document) {
  const Json& a = document->Dereference(left, path);
  const Json& b = document->Dereference(right, path);
  if (!a.is_object() || !b.is_object()) return false;
  const auto a_values = ListedValues(a);
  const auto b_values = ListedValues(b);
  document->Spend(kSchemaStep + (a_values ? a_values->size() : 0) +
                  (b_values ? b_values->size() : 0));
  if (a_values.has_value() && b_values.has_value()) {
    return !ShareValue(*a_values, *b_values, document);
  }
  if (a_values.has_value() || b_values.has_value()) {
    const Json& other = a_values.has_value() ? b : a;
    return other.contains("type") &&
           std::none_of((a_values ? *a_values : *b_values).begin(),
                        (a_values ? *a_values : *b_values).end(),
                        [&](const Json& value) { return FitsType(value, other, path); });
  }
  if (!a.contains("type") || !b.contains("type")) return false;
  bool share = false;
  for (const std::string& type : TypesOf(a, path)) {
    for (const std::string& other : TypesOf(b, path)) {
      share = share || type == other || (type == "number" && other == "integer") ||
              (type == "integer" && other == "number");
    }
  }
  return !share ||
         (a["type"] == "object" && b["type"] == "object" && ToldApart(a, b, path, document));
}

}  // namespace

Json MergeAllOf(const Json& schema, const std::string& path, SchemaDocument* document) {
  Json merged = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
  Json own = schema;
  own.erase("allOf");
  CheckAlone(schema, "allOf", path, {"type", "properties", "required"});
  if (!schema["allOf"].is_array() || schema["allOf"].empty()) {
    RefuseSchema(path, "'allOf' must be a list of schemas");
  }
  MergeInto(&merged, own, path, 0, document);
  for (const Json& part : schema["allOf"]) MergeInto(&merged, part, path, 0, document);
  return merged;
}

void CheckDisjoint(const Json& choices, const std::string& path, SchemaDocument* document) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (Disjoint(choices[i], choices[j], path, document)) continue;
      RefuseSchema(path,
                   fmt::format("'oneOf' is supported only where no value can match two of its "
                               "schemas, but {} and {} may overlap: use 'anyOf'",
                               j, i));
    }
  }
}

}  // namespace foretoken
