#include "foretoken/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/utf8.h"
#include "grammar/code_points.h"
#include "grammar/json/json_size.h"
#include "grammar/json/json_text.h"
#include "grammar/json/schema_combination.h"
#include "grammar/json/schema_document.h"
#include "grammar/json/schema_keywords.h"
#include "grammar/json/schema_values.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxJsonDepth = 300;  // Brackets within brackets, enumerated values included.
constexpr int kMaxPrefix = 64;      // Of prefixItems: each takes a pair of parentheses.
constexpr int kMaxMembers = 1000;   // Of an object.
constexpr std::size_t kMaxRules = 20000;

// A value as it stands in the output.
std::string ValueLiteral(const Json& value) { return GrammarLiteral(value.dump()); }

// Writes one rule per schema. A failed step throws SchemaRefusal.
class SchemaWriter {
 public:
  explicit SchemaWriter(const Json& root) : document_(root) {}

  std::string Write() {
    const std::string name = RuleFor(document_.root(), "");
    std::string text = fmt::format("root ::= {}\n", name);
    for (const auto& [rule, body] : rules_) text += fmt::format("{} ::= {}\n", rule, body);
    return text + std::string(JsonRules());
  }

 private:
  std::string NewRule(std::string body) {
    if (rules_.size() >= kMaxRules)
      RefuseSchema("", fmt::format("it needs more than {} rules", kMaxRules));
    document_.Spend(body.size());
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
    if (++depth_ > kMaxSchemaDepth) RefuseSchema(path, "schemas are nested too deep");
    std::string body = Body(schema, path);
    --depth_;
    document_.Spend(body.size());
    rules_[index].second = std::move(body);
    return name;
  }

  std::string Body(const Json& schema, const std::string& path) {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) RefuseSchema(path, "false matches nothing");
      return "value";
    }
    if (!schema.is_object()) RefuseSchema(path, "a schema must be an object, true or false");
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
    if (schema.contains("allOf")) {
      merged_.push_back(MergeAllOf(schema, path, &document_));
      return Body(merged_.back(), path);
    }
    std::vector<std::string> parts;
    for (const std::string& type : TypesOf(schema, path))
      parts.push_back(OfType(type, schema, path));
    return fmt::format("{}", fmt::join(parts, " | "));
  }

  std::string Reference(const Json& reference, const std::string& path) {
    const Json& target = document_.Resolve(reference, path);
    return RuleFor(target, reference.get<std::string>().substr(1));
  }

  std::string OfType(const std::string& type, const Json& schema, const std::string& path) {
    if (type == "object") return ObjectBody(schema, path);
    if (type == "array") return ArrayBody(schema, path);
    if (type == "string") return StringBody(schema, path);
    if (type == "integer" || type == "number") return NumberBody(type == "integer", schema, path);
    return type == "boolean" ? "(\"true\" | \"false\")" : "\"null\"";
  }

  std::string Constant(const Json& schema, const std::string& path) {
    CheckAlone(schema, "const", path, {"type"});
    if (!FitsType(schema["const"], schema, path)) RefuseSchema(path, "'const' is not of the type");
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
    if (parts.empty()) RefuseSchema(path, "'enum' lists no value of the type");
    return fmt::format("{}", fmt::join(parts, " | "));
  }

  std::string Alternatives(const Json& schema, const char* keyword, const std::string& path) {
    CheckAlone(schema, keyword, path);
    const Json& choices = schema[keyword];
    if (!choices.is_array() || choices.empty()) {
      RefuseSchema(path, fmt::format("'{}' must be a list of schemas", keyword));
    }
    if (std::string_view(keyword) == "oneOf") CheckDisjoint(choices, path, &document_);
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      parts.push_back(RuleFor(choices[i], fmt::format("{}/{}/{}", path, keyword, i)));
    }
    return fmt::format("{}", fmt::join(parts, " | "));
  }

  std::string ArrayBody(const Json& schema, const std::string& path) {
    const int min = SchemaCount(schema, "minItems", 0, path);
    int max = SchemaCount(schema, "maxItems", -1, path);
    if (max >= 0 && max < min) RefuseSchema(path, "'maxItems' is less than 'minItems'");
    std::vector<std::string> prefix;
    if (schema.contains("prefixItems")) {
      const Json& items = schema["prefixItems"];
      if (!items.is_array() || items.size() > kMaxPrefix) {
        RefuseSchema(path,
                     fmt::format("'prefixItems' must be a list of {} schemas at most", kMaxPrefix));
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
    if (max >= 0 && max < min)
      RefuseSchema(path, "'minItems' asks for more items than there may be");
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
    if (!properties.is_object()) RefuseSchema(path, "'properties' must be an object");
    if (!required.is_array()) RefuseSchema(path, "'required' must be a list of names");
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
      if (!name.is_string()) RefuseSchema(path, "'required' must be a list of names");
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
        RefuseSchema(path, fmt::format("'{}' is required but may not be there", name));
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

  SchemaDocument document_;
  std::vector<std::pair<std::string, std::string>> rules_;
  std::map<const Json*, std::string> names_;
  std::deque<Json> merged_;  // Of `allOf`; rules hang on their addresses.
  std::string plain_key_;
  int depth_ = 0;
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
  } catch (const SchemaRefusal& refusal) {
    return InvalidInput(refusal.message);
  } catch (const Json::exception& error) {
    return InvalidInput(fmt::format("the schema is not valid JSON: {}", error.what()));
  }
}

}  // namespace foretoken
