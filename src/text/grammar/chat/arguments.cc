#include "text/grammar/chat/arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "foretoken/json_schema.h"
#include "json/json.h"
#include "text/grammar/chat/free_text.h"
#include "text/grammar/chat/gemma_arguments.h"
#include "text/grammar/grammar_text.h"

namespace foretoken {
namespace {

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
  const auto before = static_cast<int>(grammar->rules.size());
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
