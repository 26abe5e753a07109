#include "text/grammar/json/schema_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "text/grammar/grammar_text.h"
#include "text/grammar/json/scalar_language.h"
#include "text/grammar/json/schema_combination.h"

namespace foretoken {

Result<std::string> SchemaWriter::Write() {
  const Expression root = Value({{&document_.root(), false}});
  while (!todo_.empty()) {
    const auto wanted = std::move(todo_.back());
    todo_.pop_back();
    spelling_ = wanted.second;
    grammar_.SetBody(rules_.at(wanted), Body(wanted.first));
  }
  const int root_rule = NewRule(root);
  FT_ASSIGN_OR_RETURN(std::string text, std::move(grammar_).Write(root_rule));
  if (text.size() > kMaxGrammarBytes) {
    document_.Refuse(document_.root(),
                     fmt::format("its grammar would have {} bytes; at most {} are allowed",
                                 text.size(), kMaxGrammarBytes));
  }
  return text;
}

int SchemaWriter::NewRule(Expression body) {
  const int rule = grammar_.AddRule();
  if (grammar_.full()) {
    document_.Refuse(document_.root(),
                     fmt::format("it needs more than {} rules", JsonGrammar::kMaxRules));
  }
  document_.Spend(kSchemaStep);
  grammar_.SetBody(rule, std::move(body));
  return rule;
}

Expression SchemaWriter::Value(const Goal& wanted) {
  Goal goal = NormalGoal(wanted, &document_);
  if (goal.empty()) return Base(JsonGrammar::kValue);
  const auto [known, added] = rules_.try_emplace({goal, spelling_}, -1);
  if (added) {
    known->second = NewRule(ChoiceOf({}));
    todo_.emplace_back(std::move(goal), spelling_);
  }
  return RuleOf(known->second);
}

Expression SchemaWriter::Body(const Goal& goal) {
  std::vector<Expression> parts;
  // Alternatives that stand alone have rules of their own, which others may use as well.
  const Json& only = *goal[0].schema;
  for (const char* const keyword : {"anyOf", "oneOf"}) {
    if (goal.size() > 1 || goal[0].negated || !only.is_object() || !HasOnly(only, keyword))
      continue;
    CheckKeywords(only, document_);
    const Json& choices = only[keyword];
    bool disjoint = true;
    for (std::size_t i = 0; keyword[0] == 'o' && i < choices.size(); ++i) {
      for (std::size_t j = 0; j < i && disjoint; ++j) {
        disjoint = Disjoint(choices[i], choices[j], &document_);
      }
    }
    if (!disjoint) continue;
    for (const Json& choice : choices) parts.push_back(Value({{&choice, false}}));
    return ChoiceOf(std::move(parts));
  }
  for (const Demands& demands : WaysTo(goal, &document_)) parts.push_back(Way(demands));
  return ChoiceOf(std::move(parts));
}

Expression SchemaWriter::Way(const Demands& demands) {
  std::vector<Expression> parts;
  if (demands.values.has_value()) {
    for (const Json& value : ListedValues(demands, document_)) {
      document_.Spend(kSchemaStep);
      parts.push_back(ValuePart(value, spelling_));
    }
    return ChoiceOf(std::move(parts));
  }
  const auto may_be = [&](const Json& value) {
    return (demands.types & TypeOf(value)) != 0 &&
           std::ranges::find(demands.excluded, value) == demands.excluded.end();
  };
  if ((demands.types & kObjectType) != 0) parts.push_back(Object(demands));
  if ((demands.types & kArrayType) != 0) parts.push_back(Array(demands));
  if ((demands.types & kStringType) != 0) parts.push_back(Scalar(demands, StringPart));
  if ((demands.types & kNumberTypes) != 0) parts.push_back(Scalar(demands, NumberPart));
  for (const Json& value : {Json(true), Json(false), Json(nullptr)}) {
    if (may_be(value)) parts.push_back(ValuePart(value, spelling_));
  }
  return ChoiceOf(std::move(parts));
}

// Schemas repeat themselves: what they demand of a string or a number is written once.
Expression SchemaWriter::Scalar(const Demands& demands,
                                Expression (*write)(const Demands&, Spelling, const SchemaDocument&,
                                                    JsonGrammar*)) {
  const bool strings = write == StringPart;
  std::string key = strings ? fmt::format("string {} {}", demands.length.min, demands.length.max)
                            : fmt::format("number {}", demands.types & kNumberTypes);
  for (const KeywordDemand& demand : strings ? demands.strings : demands.numbers) {
    key += fmt::format(" {}{} {}", demand.negated ? "not " : "", demand.keyword,
                       (*demand.schema)[demand.keyword].dump());
  }
  for (const Json& value : demands.excluded) key += fmt::format(" but {}", value.dump());
  if (spelling_ == Spelling::kOne) key += " in one spelling";
  const auto known = scalars_.find(key);
  if (known != scalars_.end()) return known->second;
  return scalars_.try_emplace(key, write(demands, spelling_, document_, &grammar_)).first->second;
}

}  // namespace foretoken
