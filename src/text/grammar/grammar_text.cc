#include "text/grammar/grammar_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

namespace foretoken {
namespace {

using Kind = Expression::Kind;

void VisitEveryRule(const Expression& expression, const std::function<void(int)>& visit) {
  if (expression.kind == Kind::kRule) visit(expression.rule);
  for (const Expression& part : expression.parts) VisitEveryRule(part, visit);
}

bool Matchable(const Expression& expression, const std::vector<bool>& rules) {
  const auto matchable = [&](const Expression& part) { return Matchable(part, rules); };
  switch (expression.kind) {
    case Kind::kLiteral:
    case Kind::kBeginUnique:
      return true;
    case Kind::kClass:
      return !expression.ranges.empty();
    case Kind::kRule:
      return rules[expression.rule];
    case Kind::kSequence:
      return std::ranges::all_of(expression.parts, matchable);
    case Kind::kChoice:
      return std::ranges::any_of(expression.parts, matchable);
    case Kind::kRepeat:
      return expression.min == 0 || matchable(expression.parts[0]);
  }
  return false;
}

// Takes out of a matchable expression what cannot be matched.
void Prune(Expression* expression, const std::vector<bool>& rules) {
  const auto unmatchable = [&](const Expression& part) { return !Matchable(part, rules); };
  if (expression->kind == Kind::kChoice) std::erase_if(expression->parts, unmatchable);
  if (expression->kind == Kind::kRepeat && unmatchable(expression->parts[0])) {
    *expression = LiteralOf("");
  }
  for (Expression& part : expression->parts) Prune(&part, rules);
}

std::string ClassCharacter(std::uint32_t code) {
  const bool plain =
      (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
  if (plain) return std::string(1, static_cast<char>(code));
  if (code < 0x100) return fmt::format("\\x{:02X}", code);
  return code < 0x10000 ? fmt::format("\\u{:04X}", code) : fmt::format("\\U{:08X}", code);
}

class GrammarWriter {
 public:
  explicit GrammarWriter(const Grammar& grammar) : grammar_(grammar) {}

  std::string Write() {
    if (grammar_.reasoning.has_value()) AddReasoning(*grammar_.reasoning);
    std::vector<int> todo{grammar_.root};
    std::vector<bool> seen(grammar_.rules.size(), false);
    seen[grammar_.root] = true;
    while (!todo.empty()) {
      const GrammarRule& rule = grammar_.rules[todo.back()];
      todo.pop_back();
      text_ += rule.name + " ::=";
      Add(rule.body, false);
      text_ += '\n';
      VisitEveryRule(rule.body, [&](int used) {
        if (!seen[used]) todo.push_back(used);
        seen[used] = true;
      });
    }
    return std::move(text_);
  }

 private:
  void AddReasoning(const ReasoningLimit& limit) {
    text_ += fmt::format("@reasoning {} {}{} {}", limit.tokens, limit.begun ? "begun " : "",
                         GrammarLiteral(limit.open), GrammarLiteral(limit.close));
    if (!limit.message.empty()) text_ += fmt::format(" {}", GrammarLiteral(limit.message));
    text_ += '\n';
  }

  // As one item of a sequence, if `item`.
  void Add(const Expression& expression, bool item) {
    switch (expression.kind) {
      case Kind::kLiteral:
        text_ += fmt::format(" {}", GrammarLiteral(expression.literal));
        return;
      case Kind::kClass:
        text_ += " [";
        for (const CodeRange& range : expression.ranges) {
          text_ += ClassCharacter(range.first);
          if (range.last > range.first) text_ += fmt::format("-{}", ClassCharacter(range.last));
        }
        text_ += ']';
        return;
      case Kind::kBeginUnique:
        text_ += R"( @unique "[")";
        return;
      case Kind::kRule:
        text_ += fmt::format(" {}", grammar_.rules[expression.rule].name);
        return;
      case Kind::kRepeat:
        AddRepeated(expression.parts[0]);
        text_ += expression.max == Expression::kUnbounded
                     ? fmt::format("{{{},}}", expression.min)
                     : fmt::format("{{{},{}}}", expression.min, expression.max);
        return;
      case Kind::kSequence:
      case Kind::kChoice:
        AddParts(expression, item);
        return;
    }
  }

  void AddRepeated(const Expression& part) {
    if (part.parts.empty() && part.kind != Kind::kSequence) return Add(part, true);
    text_ += " (";
    Add(part, false);
    text_ += ')';
  }

  void AddParts(const Expression& expression, bool item) {
    const bool choice = expression.kind == Kind::kChoice;
    if (expression.parts.size() == 1) return Add(expression.parts[0], item);
    if (expression.parts.empty()) {
      text_ += " \"\"";
      return;
    }
    item = item && choice;  // A sequence within a sequence needs no parentheses.
    if (item) text_ += " (";
    for (const Expression& part : expression.parts) {
      if (choice && &part != &expression.parts[0]) text_ += " |";
      Add(part, !choice);
    }
    if (item) text_ += ')';
  }

  const Grammar& grammar_;
  std::string text_;
};

}  // namespace

Expression LiteralOf(std::string bytes) { return {.literal = std::move(bytes)}; }

Expression ClassOf(std::vector<CodeRange> ranges) {
  return {.kind = Kind::kClass, .ranges = std::move(ranges)};
}

Expression RuleOf(int rule) { return {.kind = Kind::kRule, .rule = rule}; }

Expression SequenceOf(std::vector<Expression> parts) {
  return {.kind = Kind::kSequence, .parts = std::move(parts)};
}

Expression ChoiceOf(std::vector<Expression> parts) {
  return {.kind = Kind::kChoice, .parts = std::move(parts)};
}

Expression RepeatOf(Expression part, int min, int max) {
  Expression repeat{.kind = Kind::kRepeat, .min = min, .max = max};
  repeat.parts.push_back(std::move(part));
  return repeat;
}

bool DropUnmatchable(Grammar* grammar) {
  std::vector<bool> matchable(grammar->rules.size(), false);
  std::vector<std::vector<int>> users(grammar->rules.size());
  std::vector<int> todo;
  for (int rule = 0; rule < std::ssize(users); ++rule) {
    VisitEveryRule(grammar->rules[rule].body, [&](int used) { users[used].push_back(rule); });
    todo.push_back(rule);
  }
  // Rules that were written last are used by others and come first.
  while (!todo.empty()) {
    const int rule = todo.back();
    todo.pop_back();
    if (matchable[rule] || !Matchable(grammar->rules[rule].body, matchable)) continue;
    matchable[rule] = true;
    todo.insert(todo.end(), users[rule].begin(), users[rule].end());
  }
  for (GrammarRule& rule : grammar->rules) {
    const bool kept = matchable[&rule - grammar->rules.data()];
    kept ? Prune(&rule.body, matchable) : void(rule.body = ChoiceOf({}));
  }
  return matchable[grammar->root];
}

std::string GrammarText(const Grammar& grammar) { return GrammarWriter(grammar).Write(); }

}  // namespace foretoken
