#include "grammar/json/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/utf8.h"
#include "grammar/code_points.h"
#include "grammar/json/json_size.h"
#include "grammar/json/json_text.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxJsonDepth = 300;  // Brackets within brackets, enumerated values included.
constexpr int kMaxDepth = 64;       // Schemas within schemas.
constexpr int kMaxPrefix = 64;      // Of prefixItems: each takes a pair of parentheses.
constexpr int kMaxMembers = 1000;   // Of an object.
constexpr std::size_t kMaxRules = 20000;
constexpr std::size_t kMaxWork = 2'000'000;  // Bytes written, about, and what costs as much.
constexpr std::size_t kStep = 32;            // Of comparing two schemas, apart from their parts.

// Keywords that say nothing about which texts match.
const char* const kAnnotations[] = {
    "title",    "description", "default",     "examples",   "example",  "$schema",  "$id",
    "$comment", "$defs",       "definitions", "deprecated", "readOnly", "writeOnly"};
const char* const kTypes[] = {"object", "array", "string", "number", "integer", "boolean", "null"};

bool IsOneOf(std::string_view name, const auto& names) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char* known) { return name == known; });
}

// A value as it stands in the output.
std::string ValueLiteral(const Json& value) { return GrammarLiteral(value.dump()); }

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

// Writes one rule per schema. A failed step throws Refusal, which stays within this file.
class SchemaWriter {
 public:
  explicit SchemaWriter(const Json& root) : root_(root) {}

  std::string Write() {
    const std::string name = RuleFor(root_, "");
    std::string text = fmt::format("root ::= {}\n", name);
    for (const auto& [rule, body] : rules_) text += fmt::format("{} ::= {}\n", rule, body);
    return text + std::string(JsonRules());
  }

  struct Refusal {
    std::string message;
  };

 private:
  [[noreturn]] static void Refuse(const std::string& path, const std::string& what) {
    throw Refusal{fmt::format("schema, at {}: {}", path.empty() ? "its root" : path, what)};
  }

  // Schemas of some shapes would take time that grows faster than they do.
  void Spend(std::size_t work) {
    work_ += work;
    if (work_ > kMaxWork) Refuse("", "it is too large or too intricate; make it smaller");
  }

  std::string NewRule(std::string body) {
    if (rules_.size() >= kMaxRules)
      Refuse("", fmt::format("it needs more than {} rules", kMaxRules));
    Spend(body.size());
    rules_.emplace_back(fmt::format("v{}", rules_.size()), std::move(body));
    return rules_.back().first;
  }

  // The name of the rule for `schema`; written at the first call, so that schemas may refer to
  // themselves.
  std::string RuleFor(const Json& schema, const std::string& path) {
    const auto [known, added] = names_.try_emplace(&schema);
    if (!added) return known->second;
    const std::string name = NewRule("");
    known->second = name;
    const std::size_t index = rules_.size() - 1;
    if (++depth_ > kMaxDepth) Refuse(path, "schemas are nested too deep");
    std::string body = Body(schema, path);
    --depth_;
    Spend(body.size());
    rules_[index].second = std::move(body);
    return name;
  }

  std::string Body(const Json& schema, const std::string& path) {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) Refuse(path, "false matches nothing");
      return "value";
    }
    if (!schema.is_object()) Refuse(path, "a schema must be an object, true or false");
    CheckKeywords(schema, path);
    if (schema.contains("$ref")) {
      CheckAlone(schema, "$ref", path);
      return Reference(schema["$ref"], path);
    }
    if (schema.contains("const")) return Constant(schema, path);
    if (schema.contains("enum")) return Enumeration(schema, path);
    for (const char* const keyword : {"anyOf", "oneOf"}) {
      if (schema.contains(keyword)) return Alternatives(schema, keyword, path);
    }
    if (schema.contains("allOf")) return Body(MergeAllOf(schema, path), path);
    std::vector<std::string> parts;
    for (const std::string& type : TypesOf(schema, path))
      parts.push_back(OfType(type, schema, path));
    return fmt::format("{}", fmt::join(parts, " | "));
  }

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
      const bool empty_demand = (keyword == "uniqueItems" && value == false) ||
                                (keyword == "minProperties" && value == 0);
      if (!IsOneOf(keyword, kKnown) && !IsOneOf(keyword, kAnnotations) && !empty_demand) {
        Refuse(path, fmt::format("the keyword '{}' is not supported", keyword));
      }
    }
  }

  // Refuses keywords beside `keyword` other than those in `others` and annotations.
  void CheckAlone(const Json& schema, std::string_view keyword, const std::string& path,
                  std::initializer_list<std::string_view> others = {}) {
    for (const auto& [name, value] : schema.items()) {
      if (name == keyword || IsOneOf(name, kAnnotations) ||
          std::find(others.begin(), others.end(), name) != others.end()) {
        continue;
      }
      Refuse(path, fmt::format("'{}' beside '{}' is not supported", name, keyword));
    }
  }

  // A number of characters, items and the like.
  static int Count(const Json& schema, const char* keyword, int otherwise,
                   const std::string& path) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return otherwise;
    if (!found->is_number_unsigned() && !(found->is_number_integer() && *found >= 0)) {
      Refuse(path, fmt::format("'{}' must be a whole number from 0 on", keyword));
    }
    if (*found > kMaxRepetitions) {
      Refuse(path, fmt::format("'{}' may be {} at most", keyword, kMaxRepetitions));
    }
    return found->get<int>();
  }

  const Json& Resolve(const Json& reference, const std::string& path) {
    const std::string text = reference.is_string() ? reference.get<std::string>() : "";
    if (text != "#" && !text.starts_with("#/")) {
      Refuse(path, "'$ref' must name a place in this schema, like #/$defs/name");
    }
    try {
      const Json::json_pointer pointer(text.substr(1));
      if (root_.contains(pointer)) return root_.at(pointer);
    } catch (const Json::exception&) {
      // Said below.
    }
    Refuse(path, fmt::format("'$ref' names '{}', which is not there", text));
  }

  std::string Reference(const Json& reference, const std::string& path) {
    const Json& target = Resolve(reference, path);
    return RuleFor(target, reference.get<std::string>().substr(1));
  }

  std::vector<std::string> TypesOf(const Json& schema, const std::string& path) {
    std::vector<std::string> types;
    const auto found = schema.find("type");
    if (found != schema.end()) {
      for (const Json& type : found->is_array() ? *found : Json::array({*found})) {
        if (!type.is_string() || !IsOneOf(type.get<std::string>(), kTypes)) {
          Refuse(path, fmt::format("the type {} is not known", type.dump()));
        }
        types.push_back(type.get<std::string>());
      }
      if (types.empty()) Refuse(path, "'type' lists no type");
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

  std::string OfType(const std::string& type, const Json& schema, const std::string& path) {
    if (type == "object") return ObjectBody(schema, path);
    if (type == "array") return ArrayBody(schema, path);
    if (type == "string") return StringBody(schema, path);
    if (type == "integer" || type == "number") return NumberBody(type == "integer", schema, path);
    return type == "boolean" ? "(\"true\" | \"false\")" : "\"null\"";
  }

  bool FitsType(const Json& value, const Json& schema, const std::string& path) {
    if (!schema.contains("type")) return true;
    const auto types = TypesOf(schema, path);
    return std::any_of(types.begin(), types.end(),
                       [&](const std::string& type) { return HasType(value, type); });
  }

  std::string Constant(const Json& schema, const std::string& path) {
    CheckAlone(schema, "const", path, {"type"});
    if (!FitsType(schema["const"], schema, path)) Refuse(path, "'const' is not of the type");
    return ValueLiteral(schema["const"]);
  }

  std::string Enumeration(const Json& schema, const std::string& path) {
    CheckAlone(schema, "enum", path, {"type", "nullable"});
    std::vector<std::string> parts;
    if (schema["enum"].is_array()) {
      for (const Json& value : schema["enum"]) {
        if (FitsType(value, schema, path)) parts.push_back(ValueLiteral(value));
      }
    }
    if (parts.empty()) Refuse(path, "'enum' lists no value of the type");
    return fmt::format("{}", fmt::join(parts, " | "));
  }

  std::string Alternatives(const Json& schema, const char* keyword, const std::string& path) {
    CheckAlone(schema, keyword, path);
    const Json& choices = schema[keyword];
    if (!choices.is_array() || choices.empty()) {
      Refuse(path, fmt::format("'{}' must be a list of schemas", keyword));
    }
    if (std::string_view(keyword) == "oneOf") CheckDisjoint(choices, path);
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      parts.push_back(RuleFor(choices[i], fmt::format("{}/{}/{}", path, keyword, i)));
    }
    return fmt::format("{}", fmt::join(parts, " | "));
  }

  const Json& Dereference(const Json& schema, const std::string& path) {
    const Json* at = &schema;
    for (int i = 0; i < kMaxDepth && at->is_object() && at->contains("$ref"); ++i) {
      at = &Resolve((*at)["$ref"], path);
    }
    return *at;
  }

  // The values of `schema` where it lists them.
  static std::optional<std::vector<Json>> ListedValues(const Json& schema) {
    if (schema.is_object() && schema.contains("const")) return std::vector<Json>{schema["const"]};
    if (!schema.is_object() || !schema.contains("enum") || !schema["enum"].is_array()) return {};
    return std::vector<Json>(schema["enum"].begin(), schema["enum"].end());
  }

  bool ShareValue(const std::vector<Json>& a, const std::vector<Json>& b) {
    Spend(a.size() * b.size());
    return std::any_of(a.begin(), a.end(), [&](const Json& value) {
      return std::find(b.begin(), b.end(), value) != b.end();
    });
  }

  // Whether no value can match both: other types, other listed values, or objects that a required
  // property tells apart.
  bool Disjoint(const Json& left, const Json& right, const std::string& path) {
    const Json& a = Dereference(left, path);
    const Json& b = Dereference(right, path);
    if (!a.is_object() || !b.is_object()) return false;
    const auto a_values = ListedValues(a);
    const auto b_values = ListedValues(b);
    Spend(kStep + (a_values ? a_values->size() : 0) + (b_values ? b_values->size() : 0));
    if (a_values.has_value() && b_values.has_value()) return !ShareValue(*a_values, *b_values);
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
    return !share || (a["type"] == "object" && b["type"] == "object" && ToldApart(a, b, path));
  }

  bool ToldApart(const Json& a, const Json& b, const std::string& path) {
    const auto required = [this](const Json& schema, const std::string& name) {
      const Json names = schema.value("required", Json::array());
      Spend(kStep + names.size());
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (!a.contains("properties") || !b.contains("properties")) return false;
    for (const auto& [name, property] : a["properties"].items()) {
      if (!b["properties"].contains(name) || !required(a, name) || !required(b, name)) continue;
      const auto a_values = ListedValues(Dereference(property, path));
      const auto b_values = ListedValues(Dereference(b["properties"][name], path));
      if (a_values && b_values && !ShareValue(*a_values, *b_values)) return true;
    }
    return false;
  }

  void CheckDisjoint(const Json& choices, const std::string& path) {
    for (std::size_t i = 0; i < choices.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (Disjoint(choices[i], choices[j], path)) continue;
        Refuse(path, fmt::format("'oneOf' is supported only where no value can match two of its "
                                 "schemas, but {} and {} may overlap: use 'anyOf'",
                                 j, i));
      }
    }
  }

  // Objects that must match all of several schemas, as one schema.
  const Json& MergeAllOf(const Json& schema, const std::string& path) {
    merged_.push_back(Json::object());
    Json& merged = merged_.back();
    merged = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    Json own = schema;
    own.erase("allOf");
    CheckAlone(schema, "allOf", path, {"type", "properties", "required"});
    if (!schema["allOf"].is_array() || schema["allOf"].empty()) {
      Refuse(path, "'allOf' must be a list of schemas");
    }
    MergeInto(&merged, own, path, 0);
    for (const Json& part : schema["allOf"]) MergeInto(&merged, part, path, 0);
    return merged;
  }

  void MergeInto(Json* merged, const Json& part, const std::string& path, int depth) {
    const Json& schema = Dereference(part, path);
    if (!schema.is_object() || depth > kMaxDepth) Refuse(path, "'allOf' is supported for objects");
    Spend(kStep + schema.size());
    for (const auto& [keyword, value] : schema.items()) {
      if (keyword == "properties" && value.is_object()) {
        for (const auto& [name, property] : value.items()) {
          if ((*merged)["properties"].contains(name) && (*merged)["properties"][name] != property) {
            Refuse(path, fmt::format("two schemas of 'allOf' describe the property '{}'", name));
          }
          Spend(1 + (*merged)["properties"].size());
          (*merged)["properties"][name] = property;
        }
      } else if (keyword == "required" && value.is_array()) {
        for (const Json& name : value) (*merged)["required"].push_back(name);
      } else if (keyword == "allOf" && value.is_array()) {
        for (const Json& inner : value) MergeInto(merged, inner, path, depth + 1);
      } else if (!(keyword == "type" && value == "object") && !IsOneOf(keyword, kAnnotations)) {
        Refuse(path, fmt::format("'{}' within 'allOf' is not supported: it is for objects with "
                                 "'properties' and 'required'",
                                 keyword));
      }
    }
  }

  std::string NumberBody(bool integer, const Json& schema, const std::string& path) {
    const auto low = Bound(schema, "minimum", "exclusiveMinimum", +1, path);
    const auto high = Bound(schema, "maximum", "exclusiveMaximum", -1, path);
    if (!low.has_value() && !high.has_value()) return integer ? "integer" : "number";
    const std::int64_t first = low.value_or(-kMaxJsonInteger);
    const std::int64_t last = high.value_or(kMaxJsonInteger);
    if (first > last) Refuse(path, "no whole number lies within its bounds");
    return integer ? JsonIntegers(first, last) : JsonNumbers(first, last);
  }

  // The bound as a whole number within it; `inward` is the direction of the allowed numbers.
  static std::optional<std::int64_t> Bound(const Json& schema, const char* inclusive,
                                           const char* exclusive, int inward,
                                           const std::string& path) {
    std::optional<double> bound;
    for (const char* const keyword : {inclusive, exclusive}) {
      const auto found = schema.find(keyword);
      if (found == schema.end()) continue;
      if (!found->is_number() || std::abs(found->get<double>()) > 1e15) {
        Refuse(path, fmt::format("'{}' must be a number within +-10^15", keyword));
      }
      double value = found->get<double>();
      value = inward > 0 ? std::ceil(value) : std::floor(value);
      if (keyword == exclusive && value == found->get<double>()) value += inward;
      bound = !bound.has_value() ? value
              : inward > 0       ? std::max(*bound, value)
                                 : std::min(*bound, value);
    }
    if (!bound.has_value()) return std::nullopt;
    return static_cast<std::int64_t>(*bound);
  }

  std::string StringBody(const Json& schema, const std::string& path) {
    const int min = Count(schema, "minLength", 0, path);
    const int max = Count(schema, "maxLength", -1, path);
    const bool counted = schema.contains("minLength") || schema.contains("maxLength");
    const bool pattern = schema.contains("pattern");
    const bool format = schema.contains("format");
    if (counted + pattern + format > 1) {
      Refuse(path, "only one of 'pattern', 'format' and lengths is supported at once");
    }
    std::string content;
    if (pattern) {
      if (!schema["pattern"].is_string()) Refuse(path, "'pattern' must be a text");
      const Result<std::string> text = JsonStringPattern(schema["pattern"].get<std::string>());
      if (!text.ok()) Refuse(path, text.error().message);
      content = *text;
    } else if (format) {
      const auto text = schema["format"].is_string()
                            ? JsonStringFormat(schema["format"].get<std::string>())
                            : std::nullopt;
      if (!text.has_value()) {
        Refuse(path, fmt::format("the format {} is not supported", schema["format"].dump()));
      }
      content = *text;
    } else if (counted) {
      if (max >= 0 && max < min) Refuse(path, "'maxLength' is less than 'minLength'");
      content = max < 0 ? fmt::format("char{{{},}}", min) : fmt::format("char{{{},{}}}", min, max);
    } else {
      return "string";
    }
    return fmt::format(R"("\"" {} "\"")", content);
  }

  std::string ArrayBody(const Json& schema, const std::string& path) {
    const int min = Count(schema, "minItems", 0, path);
    int max = Count(schema, "maxItems", -1, path);
    if (max >= 0 && max < min) Refuse(path, "'maxItems' is less than 'minItems'");
    std::vector<std::string> prefix;
    if (schema.contains("prefixItems")) {
      const Json& items = schema["prefixItems"];
      if (!items.is_array() || items.size() > kMaxPrefix) {
        Refuse(path, fmt::format("'prefixItems' must be a list of {} schemas at most", kMaxPrefix));
      }
      for (const Json& item : items) {
        prefix.push_back(RuleFor(item, fmt::format("{}/prefixItems/{}", path, prefix.size())));
      }
    }
    const int fixed = static_cast<int>(prefix.size());
    const bool closed = schema.contains("items")
                            ? schema["items"] == false
                            : fixed > 0 && min <= fixed;  // More are not needed.
    if (closed) max = max < 0 ? fixed : std::min(max, fixed);
    if (max >= 0 && max < min) Refuse(path, "'minItems' asks for more items than there may be");
    std::string item = "value";
    if (!closed && schema.contains("items")) item = RuleFor(schema["items"], path + "/items");
    const std::string items = Items(prefix, item, 0, min, max);
    return items.empty() ? R"("[" ws "]")" : fmt::format(R"("[" ws {} "]")", items);
  }

  // The items from `index` on, with what separates them from those before; empty for none.
  std::string Items(const std::vector<std::string>& prefix, const std::string& item, int index,
                    int min, int max) {
    if (max == index) return "";
    const char* const comma = index == 0 ? "" : "\",\" ws ";
    const bool fixed = index < static_cast<int>(prefix.size());
    std::string text;
    if (fixed || index == 0) {
      const std::string rest = Items(prefix, item, index + 1, min, max);
      text = fmt::format("{}{} {}", comma, fixed ? prefix[index] : item, rest);
      if (index == 0) text += " ws";
      return index < min ? text : fmt::format("({})?", text);
    }
    const int least = std::max(0, min - index);
    return max < 0 ? fmt::format("(\",\" ws {}){{{},}}", item, least)
                   : fmt::format("(\",\" ws {}){{{},{}}}", item, least, max - index);
  }

  struct Member {
    std::string text;  // "name": value
    bool required = false;
  };

  std::string ObjectBody(const Json& schema, const std::string& path) {
    const Json properties = schema.value("properties", Json::object());
    const Json required = schema.value("required", Json::array());
    if (!properties.is_object()) Refuse(path, "'properties' must be an object");
    if (!required.is_array()) Refuse(path, "'required' must be a list of names");
    const bool declared = schema.contains("properties") || !required.empty();
    const Json additional = schema.value("additionalProperties", Json(!declared));
    std::string additional_rule;
    if (additional != false) {
      additional_rule = additional == true ? "value"
                                           : RuleFor(schema["additionalProperties"],
                                                     path + "/additionalProperties");
    }
    std::set<std::string> needed;
    for (const Json& name : required) {
      if (!name.is_string()) Refuse(path, "'required' must be a list of names");
      needed.insert(name.get<std::string>());
    }
    std::vector<Member> members;
    std::set<std::string> names;
    const auto add = [&](const std::string& name, const std::string& rule) {
      names.insert(name);
      members.push_back(
          {fmt::format("{} \":\" ws {}", ValueLiteral(Json(name)), rule), needed.contains(name)});
    };
    // The rules hang on the address of their schema: take those in place, not the copy.
    if (schema.contains("properties")) {
      for (const auto& [name, property] : schema["properties"].items()) {
        if (property == false && !needed.contains(name)) {
          names.insert(name);  // It must not be there.
          continue;
        }
        add(name, RuleFor(property, fmt::format("{}/properties/{}", path, name)));
      }
    }
    for (const std::string& name : needed) {
      if (names.contains(name)) continue;
      if (schema.contains("additionalProperties") && additional == false) {
        Refuse(path, fmt::format("'{}' is required but may not be there", name));
      }
      add(name, additional_rule.empty() ? "value" : additional_rule);
    }
    std::string extra;
    if (!additional_rule.empty()) {
      extra = fmt::format("{} \":\" ws {}", OtherKey(names), additional_rule);
    }
    const std::string body = MemberList(members, extra);
    return body.empty() ? R"("{" ws "}")" : fmt::format(R"("{{" ws {} "}}")", body);
  }

  // Members in their order, with commas between those that are there; `extra` ones at the end.
  std::string MemberList(const std::vector<Member>& members, const std::string& extra) {
    // What may follow member i, and what comes where none before i is there.
    std::string rest = extra.empty() ? "" : fmt::format("(\",\" ws {})*", extra);
    std::string first = extra.empty() ? "" : fmt::format("({} {} ws)?", extra, rest);
    if (!members.empty() && extra.empty()) first = "\"\"";
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      // Each is used twice: what is long becomes a rule.
      if (rest.size() > 40) rest = NewRule(rest);
      const std::string alone = fmt::format("{} {} ws", member->text, rest);
      first = member->required ? alone : fmt::format("({} | {})", alone, first);
      if (first.size() > 40 && member + 1 != members.rend()) first = NewRule(first);
      const std::string follows = fmt::format("\",\" ws {}", member->text);
      rest = fmt::format("{} {}", member->required ? follows : fmt::format("({})?", follows), rest);
    }
    return first;
  }

  // A rule for the keys of additional properties: strings, without escapes, other than `names`.
  std::string OtherKey(const std::set<std::string>& names) {
    if (names.empty()) return "string";
    std::vector<std::u32string> taken;
    for (const std::string& name : names) {
      std::u32string codes;
      std::string_view rest = name;
      std::uint32_t code = 0;
      while (TakeUtf8(&rest, &code)) codes.push_back(code);
      const bool escapes = std::any_of(
          codes.begin(), codes.end(), [](char32_t c) { return c < 0x20 || c == '"' || c == '\\'; });
      if (rest.empty() && !escapes) taken.push_back(codes);
    }
    if (plain_key_.empty()) plain_key_ = NewRule(R"([^"\\\x00-\x1F]*)");
    std::sort(taken.begin(), taken.end());
    return fmt::format(R"("\"" {} "\"")", Except(taken, 0));
  }

  // A rule for plain text that is none of `taken`, which agree up to `depth` characters; these are
  // behind us.
  std::string Except(std::span<const std::u32string> taken, std::size_t depth) {
    std::vector<std::string> parts;
    std::vector<CodeRange> next;
    const bool ends_one = !taken.empty() && taken.front().size() == depth;
    if (ends_one) taken = taken.subspan(1);
    for (std::size_t begin = 0; begin < taken.size();) {
      const char32_t code = taken[begin][depth];
      std::size_t end = begin;
      while (end < taken.size() && taken[end][depth] == code) ++end;
      std::string character;
      AppendUtf8(code, &character);
      parts.push_back(fmt::format("{} {}", GrammarLiteral(character),
                                  Except(taken.subspan(begin, end - begin), depth + 1)));
      next.push_back({code, code});
      begin = end;
    }
    next.push_back({0, 0x1F});
    next.push_back({'"', '"'});
    next.push_back({'\\', '\\'});
    const auto others = JsonCharacter(ComplementRanges(NormalizeRanges(next)));
    parts.push_back(fmt::format("{} {}", *others, plain_key_));
    if (!ends_one) parts.push_back("\"\"");
    return NewRule(fmt::format("{}", fmt::join(parts, " | ")));
  }

  const Json& root_;
  std::vector<std::pair<std::string, std::string>> rules_;
  std::map<const Json*, std::string> names_;
  std::deque<Json> merged_;
  std::string plain_key_;
  int depth_ = 0;
  std::size_t work_ = 0;
};

}  // namespace

std::string JsonObjectGrammar() { return fmt::format("root ::= object\n{}", JsonRules()); }

Result<std::string> JsonSchemaGrammar(std::string_view schema) {
  if (schema.size() > kMaxGrammarBytes) {
    return InvalidInput(fmt::format("the schema has {} bytes; at most {} are allowed",
                                    schema.size(), kMaxGrammarBytes));
  }
  try {
    FT_RETURN_IF_ERROR(CheckJsonSize(schema, kMaxJsonDepth, kMaxMembers));
    const Json parsed = Json::parse(schema);
    return SchemaWriter(parsed).Write();
  } catch (const SchemaWriter::Refusal& refusal) {
    return InvalidInput(refusal.message);
  } catch (const Json::exception& error) {
    return InvalidInput(fmt::format("the schema is not valid JSON: {}", error.what()));
  }
}

}  // namespace foretoken
