#pragma once

#include <random>
#include <regex>
#include <string>
#include <vector>

#include "json/json.h"

namespace foretoken {

/// Random JSON Schemas, and a validator that knows nothing of grammars.
class RandomSchema {
 public:
  /// `bounded`: the schema limits the length of the texts that match it, so that every output ends.
  RandomSchema(unsigned seed, bool bounded) : random_(seed), bounded_(bounded) {}

  Json Make() {
    Json schema = Below(4) == 0 ? Value(2) : Object(2);
    const char* const next = bounded_ ? "#/$defs/leaf" : "#/$defs/node";
    schema["$defs"] = {{"leaf", Value(0)},
                       {"node",
                        {{"type", "object"},
                         {"properties", {{"v", Value(0)}, {"next", {{"$ref", next}}}}},
                         {"required", {"v"}},
                         {"additionalProperties", !bounded_}}}};
    return schema;
  }

 private:
  int Below(int n) { return random_() % n; }

  Json Value(int depth) {
    if (depth > 0) {
      switch (Below(7)) {
        case 0:
          return Object(depth - 1);
        case 1:
          return Array(depth - 1);
        case 2:
          return {{"anyOf", {Value(depth - 1), Value(depth - 1)}}};
        case 3:
          return {{"$ref", Below(2) == 0 ? "#/$defs/leaf" : "#/$defs/node"}};
        default:
          break;
      }
    }
    switch (Below(8)) {
      case 0:
        return {{"type", "boolean"}};
      case 1:
        return Integer();
      case 2:
        return {{"enum", {"red", 1, nullptr, "a \"quoted\" one", 2.5}}};
      case 3:
        return {{"type", {"integer", "null"}}, {"maximum", Below(100)}, {"minimum", -Below(100)}};
      case 4:
        return {{"const", "Lily's \\ ball"}};
      case 5:
        return Number();
      default:
        return String();
    }
  }

  Json Integer() {
    const int low = Below(2000) - 1000;
    return {{"type", "integer"}, {"minimum", low}, {"maximum", low + Below(3000)}};
  }
  Json Number() {
    if (Below(2) == 0) return {{"type", "number"}};
    const int low = Below(20) - 10;
    return {{"type", "number"}, {"minimum", low}, {"maximum", low + Below(10)}};
  }
  Json String() {
    const char* const digits = bounded_ ? "^(cat|dog)s?[0-9]{0,5}$" : "^(cat|dog)s?[0-9]*$";
    const char* patterns[] = {"^[a-z]{2,5}$", digits, "^\\d{3}-\\d{4}$", "^[^x\"]{1,4}\\.$"};
    switch (Below(4)) {
      case 0:
        return {{"type", "string"}, {"pattern", patterns[Below(4)]}};
      case 1:
        return {{"type", "string"}, {"format", Below(2) == 0 ? "date" : "uuid"}};
      default: {
        const int min = Below(4);
        return {{"type", "string"}, {"minLength", min}, {"maxLength", min + Below(8)}};
      }
    }
  }
  Json Array(int depth) {
    const int min = Below(2);
    if (Below(4) == 0) {
      return {{"type", "array"},
              {"prefixItems", {Value(0), Value(0)}},
              {"items", !bounded_},
              {"minItems", min}};
    }
    return {{"type", "array"},
            {"items", Value(depth)},
            {"minItems", min},
            {"maxItems", min + Below(4)},
            {"uniqueItems", Below(2) == 0}};
  }
  Json Object(int depth) {
    const char* names[] = {"name", "age", "a b", "\"", "é", "color", "x"};
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    for (const char* name : names) {
      if (Below(3) != 0) continue;
      schema["properties"][name] = Value(depth);
      if (Below(2) == 0) schema["required"].push_back(name);
    }
    // Unless told otherwise others may come, as many as the model likes.
    if (Below(3) == 0 || bounded_) schema["additionalProperties"] = false;
    return schema;
  }

  std::mt19937 random_;
  const bool bounded_;
};

inline std::size_t CharactersOf(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

inline bool HasJsonType(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

/// Whether `value` matches `schema`, of those that RandomSchema makes; `root` is where references
/// point into.
inline bool Validates(const Json& schema, const Json& root, const Json& value) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("$ref")) {
    return Validates(*root.Find(schema["$ref"].text().substr(1)), root, value);
  }
  if (schema.contains("const")) return value == schema["const"];
  if (schema.contains("enum")) {
    return std::find(schema["enum"].begin(), schema["enum"].end(), value) != schema["enum"].end();
  }
  if (schema.contains("anyOf")) {
    return std::any_of(schema["anyOf"].begin(), schema["anyOf"].end(),
                       [&](const Json& option) { return Validates(option, root, value); });
  }
  const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
  if (std::none_of(types.begin(), types.end(),
                   [&](const Json& type) { return HasJsonType(value, type); })) {
    return false;
  }
  const auto within = [&](const char* least, const char* most, double measure) {
    return (!schema.contains(least) || measure >= schema[least].get<double>()) &&
           (!schema.contains(most) || measure <= schema[most].get<double>());
  };
  if (value.is_number()) return within("minimum", "maximum", value.get<double>());
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    const auto matches = [&](const std::string& pattern) {
      return std::regex_search(text, std::regex(pattern));
    };
    const std::string format = schema.value("format", "");
    return within("minLength", "maxLength", static_cast<double>(CharactersOf(text))) &&
           (!schema.contains("pattern") || matches(schema["pattern"])) &&
           (format != "date" || matches("^\\d{4}-[01]\\d-[0-3]\\d$")) &&
           (format != "uuid" || matches("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"));
  }
  if (value.is_array()) {
    bool valid = within("minItems", "maxItems", static_cast<double>(value.size()));
    if (schema.value("uniqueItems", false)) {
      for (auto item = value.begin(); item != value.end(); ++item) {
        valid = valid && std::find(value.begin(), item, *item) == item;
      }
    }
    for (std::size_t i = 0; i < value.size() && valid; ++i) {
      const bool fixed = schema.contains("prefixItems") && i < schema["prefixItems"].size();
      if (fixed) valid = Validates(schema["prefixItems"][i], root, value[i]);
      if (!fixed && schema.contains("items")) valid = Validates(schema["items"], root, value[i]);
    }
    return valid;
  }
  if (!value.is_object()) return true;
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name.get<std::string>())) return false;
  }
  for (const auto& [name, member] : value.items()) {
    const bool declared = schema.contains("properties") && schema["properties"].contains(name);
    if (declared && !Validates(schema["properties"][name], root, member)) return false;
    if (!declared && schema.value("additionalProperties", Json(true)) == false) return false;
  }
  return true;
}

}  // namespace foretoken
