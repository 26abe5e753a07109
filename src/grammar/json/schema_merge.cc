#include "grammar/json/schema_merge.h"

#include <fmt/format.h>

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

}  // namespace foretoken
