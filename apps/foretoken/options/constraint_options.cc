#include "apps/foretoken/options/options.h"

#include <fmt/core.h>

#include "base/files/read_text.h"
#include "foretoken/json_schema.h"

namespace foretoken {
namespace {

Result<std::string> ReadFor(std::string_view option, const std::string& path) {
  Result<std::string> text = ReadText(path);
  if (text.ok()) return text;
  return Invalid("{}: cannot read '{}': {}", option, path, text.error().message);
}

Result<std::string> GrammarOf(const ConstraintOptions& options) {
  if (!options.response_format.empty()) return JsonObjectGrammar();
  if (!options.grammar_file.empty()) return ReadFor("--grammar", options.grammar_file);
  if (options.json_schema.starts_with('{')) return JsonSchemaGrammar(options.json_schema);
  FT_ASSIGN_OR_RETURN(const std::string schema, ReadFor("--json-schema", options.json_schema));
  return JsonSchemaGrammar(schema);
}

}  // namespace

void AddConstraintOptions(CLI::App* app, ConstraintOptions* options) {
  const OptionGroup add(app, "Constraint");
  const AddedOption grammar = add("--grammar", &options->grammar_file, "FILE",
                                  "Let the output match a grammar (GBNF; docs/do/constrain.md)");
  const AddedOption schema =
      add("--json-schema", &options->json_schema, "FILE|JSON",
          "Let the output be JSON that matches a schema: a file, or the schema itself");
  add("--response-format", &options->response_format, "json", "Let the output be any JSON object")
      ->check(OneOf({"json"}))
      ->excludes(grammar)
      ->excludes(schema);
  schema.excludes(grammar);
}

Status Constrain(const ConstraintOptions& options, const LanguageModel& target,
                 SamplingParams* sampling) {
  if (!options.given()) return {};
  FT_ASSIGN_OR_RETURN(const std::string grammar, GrammarOf(options));
  FT_ASSIGN_OR_RETURN(sampling->constraint, target.CompileGrammar(grammar));
  return {};
}

Status KeepToBudget(const ReasoningBudget& budget, const ConstraintOptions& constraint,
                    const LanguageModel& target, std::span<const Token> prompt,
                    SamplingParams* sampling) {
  if (budget.tokens < 0) return {};
  AnswerRules rules{.reading = ReadingAfter(*target.tokenizer(), prompt),
                    .content_grammar = {},
                    .budget = budget};
  if (constraint.given()) {
    FT_ASSIGN_OR_RETURN(rules.content_grammar, GrammarOf(constraint));
  }
  FT_ASSIGN_OR_RETURN(const std::string grammar, AnswerGrammar(rules));
  if (grammar.empty()) return {};
  FT_ASSIGN_OR_RETURN(sampling->constraint, target.CompileGrammar(grammar));
  return {};
}

}  // namespace foretoken
