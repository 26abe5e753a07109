#include "apps/foretoken/server/api/output_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "foretoken/json_schema.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kMaxSchemaNameBytes = 64;

// The first place from `at` on in a valid JSON text that is no white space.
std::size_t SkipSpace(std::string_view text, std::size_t at) {
  return text.find_first_not_of(" \t\r\n", at);
}

// Where the value that begins at `at` in a valid JSON text ends.
std::size_t EndOfValue(std::string_view text, std::size_t at) {
  int depth = 0;
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') {
      ++at;
    } else if (c == '"') {
      quoted = !quoted;
      if (!quoted && depth == 0) return at + 1;
    } else if (quoted) {
      continue;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth <= 0) return depth == 0 ? at + 1 : at;
    } else if (depth == 0 && std::string_view(", \t\r\n").find(c) != std::string_view::npos) {
      return at;
    }
  }
  return at;
}

// The text of a member that is there, in the text of a valid JSON object.
std::string_view MemberText(std::string_view object, std::string_view name) {
  std::size_t at = object.find('{') + 1;
  while (true) {
    const std::size_t key = SkipSpace(object, at);
    const std::size_t key_end = EndOfValue(object, key);
    const std::size_t value = SkipSpace(object, SkipSpace(object, key_end) + 1);
    const std::size_t value_end = EndOfValue(object, value);
    const bool found = Json::Parse(object.substr(key, key_end - key)) == name;
    if (found) return object.substr(value, value_end - value);
    at = SkipSpace(object, value_end) + 1;
  }
}

// In which notation a field says what an output must be.
enum class FormatNotation {
  kSchema,   // A JSON Schema, or one as a text, or "json" for any object.
  kAny,      // True: any JSON object.
  kChoice,   // An array of texts.
  kGrammar,  // ParseGrammar's.
  kUnknown,  // One that this server does not read.
};
using NamedNotation = std::pair<std::string_view, FormatNotation>;

// What other servers have beside OpenAI's `response_format`: llama.cpp, Ollama, vLLM and SGLang.
constexpr NamedNotation kFormatsOfOthers[] = {
    {"json_schema", FormatNotation::kSchema},     {"format", FormatNotation::kSchema},
    {"guided_json", FormatNotation::kSchema},     {"guided_choice", FormatNotation::kChoice},
    {"guided_grammar", FormatNotation::kGrammar}, {"ebnf", FormatNotation::kGrammar},
    {"guided_regex", FormatNotation::kUnknown},   {"regex", FormatNotation::kUnknown},
    {"structural_tag", FormatNotation::kUnknown}};
constexpr NamedNotation kStructuredOutputs[] = {
    {"json", FormatNotation::kSchema},   {"json_object", FormatNotation::kAny},
    {"choice", FormatNotation::kChoice}, {"grammar", FormatNotation::kGrammar},
    {"regex", FormatNotation::kUnknown}, {"structural_tag", FormatNotation::kUnknown}};

void Contradict(FieldReader* fields, std::string_view name, const OutputFormat& format) {
  fields->Fail(name, fmt::format("'{}' and '{}' contradict; give one of them", format.field, name));
}

// A grammar of these texts.
std::string ChoiceGrammar(const Json& texts) {
  std::string grammar = "root ::= ";
  for (const Json& text : texts) {
    if (grammar.back() == '"') grammar += " | ";
    grammar += '"';
    for (const char c : text.text()) {
      // Letters of other alphabets stay; what has a meaning of its own in the notation does not.
      const bool plain = c != '"' && c != '\\' && static_cast<unsigned char>(c) >= ' ';
      grammar += plain ? std::string(1, c) : fmt::format("\\x{:02X}", c);
    }
    grammar += '"';
  }
  return grammar;
}

bool IsChoice(const Json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, [](const Json& text) {
           return text.is_string() && !text.text().empty();
         });
}

// Reads the field at the end of `path`, whose value is not null.
void ReadNotation(std::string_view body, std::span<const std::string_view> path, const Json& value,
                  FormatNotation notation, FieldReader* fields, OutputFormat* format) {
  const std::string_view name = path.back();
  const std::string field = fmt::format("{}", fmt::join(path, "."));
  switch (notation) {
    case FormatNotation::kSchema: {
      if (value.is_object()) return ReadSchemaField(body, path, fields, format);
      if (!value.is_string()) return fields->Refuse(name, "a JSON Schema, an object");
      const auto& text = value.text();
      if (text.empty()) return;  // As Ollama's clients have it for nothing.
      Result<std::string> grammar = text == "json" ? JsonObjectGrammar() : JsonSchemaGrammar(text);
      if (!grammar.ok()) return fields->Fail(name, grammar.error().message);
      *format = {.grammar = std::move(*grammar), .field = field};
      return;
    }
    case FormatNotation::kAny:
      if (value == Json(true)) *format = {.grammar = JsonObjectGrammar(), .field = field};
      return;
    case FormatNotation::kChoice:
      if (!IsChoice(value)) return fields->Refuse(name, "an array of strings, none of them empty");
      *format = {.grammar = ChoiceGrammar(value), .field = field};
      return;
    case FormatNotation::kGrammar:
      if (!value.is_string() || value.text().empty()) {
        return fields->Refuse(name, "a grammar, as in root ::= \"yes\" | \"no\"");
      }
      *format = {.grammar = value.get<std::string>(), .field = field};
      return;
    case FormatNotation::kUnknown:
      return fields->Refuse(name,
                            "absent: this server holds outputs to a JSON Schema "
                            "('response_format') or a grammar ('grammar'), in which it can be "
                            "written too");
  }
}

bool IsSchemaName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.size() <= kMaxSchemaNameBytes &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

void ReadSchemaField(std::string_view body, std::span<const std::string_view> path,
                     FieldReader* fields, OutputFormat* format) {
  const std::string_view name = path.back();
  const Json* schema = fields->Find(name);
  if (schema == nullptr || !schema->is_object()) fields->Refuse(name, "a JSON Schema, an object");
  if (!fields->ok()) return;
  for (const std::string_view member : path) body = MemberText(body, member);
  Result<std::string> grammar = JsonSchemaGrammar(body);
  if (!grammar.ok()) return fields->Fail(name, grammar.error().message);
  *format = {.grammar = std::move(*grammar), .field = fmt::format("{}", fmt::join(path, "."))};
}

void ReadNamedSchema(std::string_view body, std::span<const std::string_view> path,
                     FieldReader* fields, OutputFormat* format) {
  std::string name;
  std::string description;
  bool strict = true;  // Always so: what is generated matches the schema.
  fields->String("name", &name);
  if (!IsSchemaName(name)) {
    fields->Refuse("name", fmt::format("1 to {} of a-z, A-Z, 0-9, _ and -", kMaxSchemaNameBytes));
  }
  fields->String("description", &description);
  fields->Bool("strict", &strict);
  ReadSchemaField(body, path, fields, format);
}

void ReadOutputFormat(std::string_view body, FieldReader* fields, OutputFormat* format) {
  std::string grammar;
  if (fields->String("grammar", &grammar)) {
    if (grammar.empty()) fields->Refuse("grammar", "a grammar, as in root ::= \"yes\" | \"no\"");
    *format = {.grammar = std::move(grammar), .field = "grammar"};
  }
  const Json* response_format = fields->Find("response_format");
  if (response_format == nullptr) return;
  FieldReader format_fields = fields->InnerStrict("response_format", *response_format);
  std::string type;
  format_fields.String("type", &type);
  if (type != "text" && type != "json_object" && type != "json_schema") {
    return format_fields.Refuse("type", "text, json_object or json_schema");
  }
  if (type != "text" && !format->field.empty())
    return Contradict(fields, "response_format", *format);
  const Json* schema = format_fields.Find("json_schema");
  if (type == "json_schema" && schema != nullptr) {
    constexpr std::string_view kPath[] = {"response_format", "json_schema", "schema"};
    FieldReader fields_of_schema = format_fields.Inner("json_schema", *schema);
    ReadNamedSchema(body, kPath, &fields_of_schema, format);
    fields_of_schema.Close();
  } else if (type != "text" && format_fields.Find("schema") != nullptr) {
    // As llama.cpp and others have it, for both types.
    constexpr std::string_view kPath[] = {"response_format", "schema"};
    ReadSchemaField(body, kPath, &format_fields, format);
  } else if (type == "json_object") {
    *format = {.grammar = JsonObjectGrammar(), .field = "response_format"};
  } else if (type == "json_schema") {
    return format_fields.Refuse("json_schema", "{\"name\": ..., \"schema\": ...}");
  }
  format_fields.Close();
}

void ReadFormatsOfOthers(std::string_view body, FieldReader* fields, OutputFormat* format) {
  const auto read = [&](std::initializer_list<std::string_view> path, const Json* value,
                        FieldReader* place, FormatNotation notation) {
    if (value == nullptr || !fields->ok()) return;
    if (!format->field.empty()) return Contradict(place, path.end()[-1], *format);
    ReadNotation(body, path, *value, notation, place, format);
  };
  for (const auto& [name, notation] : kFormatsOfOthers) {
    read({name}, fields->Find(name), fields, notation);
  }
  const Json* outputs = fields->Find("structured_outputs");
  if (outputs == nullptr) return;
  FieldReader inner = fields->InnerStrict("structured_outputs", *outputs);
  for (const auto& [name, notation] : kStructuredOutputs) {
    read({"structured_outputs", name}, inner.Find(name), &inner, notation);
  }
  for (const char* name : {"disable_fallback", "disable_any_whitespace", "_backend"})
    inner.Has(name);
  inner.Close();
}

}  // namespace foretoken::server
