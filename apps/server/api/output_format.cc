#include "server/api/output_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "foretoken/json_schema.h"

namespace foretoken::server {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNameBytes = 64;

// Of a valid JSON text: the first place from `at` on that is no white space.
std::size_t SkipSpace(std::string_view text, std::size_t at) {
  return text.find_first_not_of(" \t\r\n", at);
}

// ... where the value that begins at `at` ends.
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

// ... the text of an object's member that is there.
std::string_view MemberText(std::string_view object, std::string_view name) {
  std::size_t at = SkipSpace(object, 0) + 1;
  while (true) {
    const std::size_t key = SkipSpace(object, at);
    const std::size_t key_end = EndOfValue(object, key);
    const std::size_t value = SkipSpace(object, SkipSpace(object, key_end) + 1);
    const std::size_t value_end = EndOfValue(object, value);
    const bool found = Json::parse(object.substr(key, key_end - key)) == name;
    if (found) return object.substr(value, value_end - value);
    at = SkipSpace(object, value_end) + 1;
  }
}

bool IsSchemaName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.size() <= kMaxNameBytes &&
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
    fields->Refuse("name", fmt::format("1 to {} of a-z, A-Z, 0-9, _ and -", kMaxNameBytes));
  }
  fields->String("description", &description);
  fields->Bool("strict", &strict);
  ReadSchemaField(body, path, fields, format);
}

void ReadOutputFormat(std::string_view body, FieldReader* fields, OutputFormat* format) {
  if (fields->String("grammar", &format->grammar)) {
    format->field = "grammar";
    if (format->grammar.empty()) {
      fields->Refuse("grammar", "a grammar, as in root ::= \"yes\" | \"no\"");
    }
  }
  const Json* response_format = fields->Find("response_format");
  if (response_format == nullptr) return;
  FieldReader format_fields = fields->Inner("response_format", *response_format);
  std::string type;
  format_fields.String("type", &type);
  if (type != "text" && type != "json_object" && type != "json_schema") {
    format_fields.Refuse("type", "text, json_object or json_schema");
  } else if (type != "text" && !format->field.empty()) {
    fields->Fail("grammar", "'grammar' and 'response_format' contradict; give one of them");
  }
  if (type == "json_schema") {
    const Json* schema = format_fields.Find("json_schema");
    if (schema == nullptr) {
      return format_fields.Refuse("json_schema", "{\"name\": ..., \"schema\": ...}");
    }
    constexpr std::string_view kPath[] = {"response_format", "json_schema", "schema"};
    FieldReader fields_of_schema = format_fields.Inner("json_schema", *schema);
    ReadNamedSchema(body, kPath, &fields_of_schema, format);
    fields_of_schema.Close();
  }
  if (type == "json_object") *format = {.grammar = JsonObjectGrammar(), .field = "response_format"};
  format_fields.Close();
}

}  // namespace foretoken::server
