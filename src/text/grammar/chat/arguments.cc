#include "text/grammar/chat/arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"
#include "base/result.h"
#include "foretoken/json_schema.h"
#include "json/json.h"
#include "text/grammar/chat/free_text.h"
#include "text/grammar/grammar_text.h"

namespace foretoken {
namespace {

constexpr int kMaxArgumentDepth = 50;

// Refuses keywords other than these and those that say nothing of a value.
Status CheckKnownKeywords(const Json& schema, std::initializer_list<std::string_view> known) {
  constexpr std::string_view kSaysNothing[] = {"type",     "title",    "description",
                                               "default",  "examples", "$schema",
                                               "$comment", "enum",     "const"};
  for (const auto& [keyword, value] : schema.items()) {
    if (std::ranges::count(kSaysNothing, keyword) > 0) continue;
    if (std::ranges::count(known, keyword) > 0) continue;
    return Invalid("the model writes arguments in a form of its own, where '{}' is not supported",
                   keyword);
  }
  return {};
}

// A key has no marks around it, so it must not be taken for anything else.
bool IsKey(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '$';
  });
}

class GemmaArgumentWriter {
 public:
  GemmaArgumentWriter(const CallForm& form, Grammar* grammar) : form_(form), grammar_(grammar) {}

  Result<Expression> Value(const Json& schema, int depth) {
    if (depth > kMaxArgumentDepth) {
      return Invalid("it is nested more than {} deep", kMaxArgumentDepth);
    }
    if (!schema.is_object()) return InvalidInput("each value needs a schema that names its 'type'");
    if (schema.contains("const")) return Constants(Json::array({schema["const"]}));
    if (schema.contains("enum")) return Constants(schema["enum"]);
    if (schema.contains("anyOf")) return AnyOf(schema, depth);
    const Json type = schema.value("type", Json());
    if (type.is_array()) return OfTypes(schema, type, depth);
    if (type == "string") {
      FT_RETURN_IF_ERROR(CheckKnownKeywords(schema, {}));
      return SequenceOf({Mark(form_.value_open), TextUpTo(form_.value_close, grammar_)});
    }
    if (type == "object") return Object(schema, depth);
    if (type == "array") return Array(schema, depth);
    if (!type.is_string()) return InvalidInput("each value needs a schema that names its 'type'");
    // Numbers and words are written as in JSON.
    FT_ASSIGN_OR_RETURN(const std::string text, JsonSchemaGrammar(schema.dump()));
    return Include(text, grammar_);
  }

 private:
  static Expression Mark(std::string_view mark) { return LiteralOf(std::string(mark)); }

  Expression Rule(Expression body) {
    grammar_->rules.push_back({fmt::format("r{}", grammar_->rules.size()), std::move(body)});
    return RuleOf(Int(grammar_->rules.size()) - 1);
  }

  Result<Expression> Constants(const Json& values) {
    std::vector<Expression> ways;
    for (const Json& value : values) {
      if (value.is_structured()) {
        return InvalidInput("an 'enum' or 'const' of lists or objects is not supported");
      }
      if (!value.is_string()) {
        ways.push_back(LiteralOf(value.dump()));
        continue;
      }
      const auto& text = value.text();
      if (text.find(form_.value_close) != std::string::npos) {
        return InvalidInput("a text has the mark in it that ends texts");
      }
      ways.push_back(LiteralOf(fmt::format("{}{}{}", form_.value_open, text, form_.value_close)));
    }
    if (ways.empty()) return InvalidInput("no value matches an empty 'enum'");
    return ChoiceOf(std::move(ways));
  }

  Result<Expression> AnyOf(const Json& schema, int depth) {
    FT_RETURN_IF_ERROR(CheckKnownKeywords(schema, {"anyOf"}));
    std::vector<Expression> ways;
    for (const Json& way : schema["anyOf"]) {
      FT_ASSIGN_OR_RETURN(Expression value, Value(way, depth + 1));
      ways.push_back(std::move(value));
    }
    return ChoiceOf(std::move(ways));
  }

  Result<Expression> OfTypes(const Json& schema, const Json& types, int depth) {
    std::vector<Expression> ways;
    for (const Json& type : types) {
      Json one = schema;
      one["type"] = type;
      FT_ASSIGN_OR_RETURN(Expression value, Value(one, depth + 1));
      ways.push_back(std::move(value));
    }
    return ChoiceOf(std::move(ways));
  }

  Result<Expression> Array(const Json& schema, int depth) {
    FT_RETURN_IF_ERROR(CheckKnownKeywords(schema, {"items", "minItems", "maxItems"}));
    if (!schema.contains("items")) return InvalidInput("an 'array' needs 'items'");
    FT_ASSIGN_OR_RETURN(Expression item, Value(schema["items"], depth + 1));
    const auto count = [&](const char* name, int otherwise) {
      const Json number = schema.value(name, Json());
      return number.is_number_unsigned() ? static_cast<int>(std::min<std::uint64_t>(
                                               number.get<std::uint64_t>(), kMaxRepetitions))
                                         : otherwise;
    };
    const int least = count("minItems", 0);
    const int most = count("maxItems", Expression::kUnbounded);
    if (most == 0) return LiteralOf("[]");
    if (most != Expression::kUnbounded && most < least) {
      return InvalidInput("no value matches: 'maxItems' is less than 'minItems'");
    }
    item = Rule(std::move(item));
    Expression more = SequenceOf({LiteralOf(","), item});
    const int most_more = most == Expression::kUnbounded ? most : most - 1;
    Expression items =
        SequenceOf({item, RepeatOf(std::move(more), std::max(0, least - 1), most_more)});
    return SequenceOf(
        {LiteralOf("["), RepeatOf(std::move(items), least > 0 ? 1 : 0, 1), LiteralOf("]")});
  }

  Result<Expression> Object(const Json& schema, int depth) {
    FT_RETURN_IF_ERROR(
        CheckKnownKeywords(schema, {"properties", "required", "additionalProperties"}));
    const Json required = schema.value("required", Json::array());
    const Json properties = schema.value("properties", Json::object());
    for (const Json& name : required) {
      if (name.is_string() && properties.contains(name.text())) continue;
      return Invalid("{} is required, but not declared", name.dump());
    }
    struct Member {
      Expression text;
      bool must = false;
    };
    std::vector<Member> members;
    for (const auto& [name, property] : properties.items()) {
      if (!IsKey(name)) {
        return Invalid(
            "the model writes names without quotes, where '{}' cannot be told from the rest", name);
      }
      FT_ASSIGN_OR_RETURN(Expression value, Value(property, depth + 1));
      members.push_back({Rule(SequenceOf({LiteralOf(name + ":"), std::move(value)})),
                         std::ranges::count(required, Json(name)) > 0});
    }
    // From the last on: what may follow where a member stands before it, and where none does.
    Expression after = LiteralOf("");
    Expression first = LiteralOf("");
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      Expression here = SequenceOf({member->text, after});
      Expression joined = SequenceOf({LiteralOf(","), member->text});
      first = Rule(member->must ? std::move(here) : ChoiceOf({std::move(here), std::move(first)}));
      after = Rule(SequenceOf(
          {member->must ? std::move(joined) : RepeatOf(std::move(joined), 0, 1), after}));
    }
    return SequenceOf({LiteralOf("{"), std::move(first), LiteralOf("}")});
  }

  const CallForm& form_;
  Grammar* grammar_;
};

// Arguments that match `schema` (JSON) as CallBody::kGemma has them: {key:value,...}, keys without
// quotes and in the order of their declaration, strings between marks. Adds rules to `grammar`.
// Refuses what it cannot hold them to, in one sentence.
Result<Expression> GemmaArguments(const CallForm& form, const std::string& schema,
                                  Grammar* grammar) {
  return GemmaArgumentWriter(form, grammar).Value(Json::Parse(schema), 0);
}

Expression TextLiteral(std::string_view text) { return LiteralOf(std::string(text)); }

void ShiftRules(int by, Expression* expression) {
  if (expression->kind == Expression::Kind::kRule) expression->rule += by;
  for (Expression& part : expression->parts) ShiftRules(by, &part);
}

// A string without quotes, up to the mark that closes it.
Result<Expression> BareString(const CallForm& form, const Json& schema, Grammar* grammar) {
  constexpr std::array<std::string_view, 6> kSaysNothing = {"type",    "title",    "description",
                                                            "default", "examples", "enum"};
  for (const auto& [keyword, value] : schema.items()) {
    if (std::ranges::count(kSaysNothing, keyword) > 0) continue;
    return Invalid("the model writes strings without quotes, where '{}' is not supported", keyword);
  }
  if (!schema.contains("enum")) return TextUpTo(form.value_close, grammar);
  std::vector<Expression> values;
  for (const Json& value : schema["enum"]) {
    if (value.is_string()) values.push_back(LiteralOf(value.get<std::string>()));
  }
  return SequenceOf({ChoiceOf(std::move(values)), TextLiteral(form.value_open.empty() ? "\n" : ""),
                     TextLiteral(form.value_close)});
}

// An argument's value with the mark behind it; `whole` is the schema that it is a part of.
Result<Expression> TagValue(const CallForm& form, const Json& whole, Json schema,
                            Grammar* grammar) {
  if (schema.is_object() && schema.value("type", Json()) == "string") {
    return BareString(form, schema, grammar);
  }
  for (const char* name : {"$defs", "definitions"}) {
    if (schema.is_object() && whole.contains(name)) schema[name] = whole[name];
  }
  FT_ASSIGN_OR_RETURN(const std::string text, JsonSchemaGrammar(schema.dump()));
  FT_ASSIGN_OR_RETURN(Expression value, Include(text, grammar));
  return SequenceOf({std::move(value), TextLiteral(form.value_open.empty() ? "\n" : ""),
                     TextLiteral(form.value_close)});
}

// Arguments in tags, in the order of their declaration.
Result<Expression> TagArguments(const CallForm& form, const Json& schema, Grammar* grammar) {
  std::vector<Expression> arguments;
  const Json required = schema.value("required", Json::array());
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, property] : properties.items()) {
    FT_ASSIGN_OR_RETURN(Expression value, TagValue(form, schema, property, grammar));
    Expression argument = SequenceOf(
        {LiteralOf(fmt::format("{}{}{}\n{}", form.key_open, name, form.key_close, form.value_open)),
         std::move(value), LiteralOf("\n")});
    const bool must = std::ranges::count(required, Json(name)) > 0;
    arguments.push_back(must ? std::move(argument) : RepeatOf(std::move(argument), 0, 1));
  }
  return SequenceOf(std::move(arguments));
}

Result<Expression> ArgumentsOf(const CallForm& form, const std::string& schema, Grammar* grammar) {
  FT_ASSIGN_OR_RETURN(const std::string json, JsonSchemaGrammar(schema));
  if (form.body == CallBody::kGemma) return GemmaArguments(form, schema, grammar);
  if (form.body != CallBody::kTags) return Include(json, grammar);
  return TagArguments(form, Json::Parse(schema), grammar);
}

}  // namespace

Result<Expression> Include(std::string_view text, Grammar* grammar) {
  FT_ASSIGN_OR_RETURN(Grammar included, ParseGrammar(text));
  if (included.reasoning.has_value()) {
    return InvalidInput(
        "'@reasoning' is about an answer as a whole; a grammar of what is said cannot have it");
  }
  const int before = grammar->rules.size();
  for (GrammarRule& rule : included.rules) {
    ShiftRules(before, &rule.body);
    rule.name = fmt::format("r{}", grammar->rules.size());
    grammar->rules.push_back(std::move(rule));
  }
  return RuleOf(before + included.root);
}

Result<Expression> Arguments(const CallForm& form, const ChatTool& tool, Grammar* grammar) {
  const std::string any = R"({"type":"object"})";
  Result<Expression> arguments =
      ArgumentsOf(form, tool.parameters.empty() ? any : tool.parameters, grammar);
  if (arguments.ok()) return arguments;
  return Invalid("the parameters of the function '{}' cannot be held to: {}", tool.name,
                 arguments.error().message);
}

}  // namespace foretoken
