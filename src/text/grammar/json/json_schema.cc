#include "foretoken/json_schema.h"

#include "json/json.h"

#include "text/grammar/json/json_grammar.h"
#include "text/grammar/json/json_size.h"
#include "text/grammar/json/schema_document.h"
#include "text/grammar/json/schema_writer.h"

namespace foretoken {
namespace {

constexpr int kMaxJsonDepth = 100;  // Brackets within brackets, enumerated values included.
constexpr int kMaxMembers = 1000;   // The most members of an object.

}  // namespace

std::string JsonObjectGrammar() {
  JsonGrammar grammar;
  const int root = grammar.AddRule();
  grammar.SetBody(root, grammar.Rule(JsonGrammar::kObject, Spelling::kAny));
  return *std::move(grammar).Write(root);
}

Result<std::string> JsonSchemaGrammar(std::string_view schema) {
  if (schema.size() > kMaxGrammarBytes) {
    return Invalid("the schema has {} bytes; at most {} are allowed", schema.size(),
                   kMaxGrammarBytes);
  }
  try {
    FT_RETURN_IF_ERROR(CheckJsonSize(schema, kMaxJsonDepth, kMaxMembers));
    std::string wrong;
    const Json parsed = Json::Parse(schema, &wrong);
    if (parsed.is_discarded()) {
      return Invalid("the schema is not valid JSON: {}", wrong);
    }
    return SchemaWriter(parsed).Write();
  } catch (const SchemaRefusal& refusal) {
    return InvalidInput(refusal.message);
  }
}

}  // namespace foretoken
