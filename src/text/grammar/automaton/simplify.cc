#include "text/grammar/automaton/simplify.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace foretoken {
namespace {

using Kind = Expression::Kind;

// What rules are replaced by that only repeat something.
constexpr std::int64_t kMaxExpandedCopies = 4096;
constexpr std::size_t kMaxExpandedRanges = 8;
constexpr std::size_t kMaxExpandedBytes = 8;
// A sequence of optional parts is written as that many alternatives, each without its beginning.
constexpr std::size_t kMaxOptionalParts = 4;
constexpr int kMaxCopiedWeight = 64;
constexpr std::size_t kMaxComparedAlternatives = 64;

bool Same(const Expression& a, const Expression& b) {
  return a.kind == b.kind && a.literal == b.literal && a.ranges == b.ranges && a.rule == b.rule &&
         a.min == b.min && a.max == b.max && std::ranges::equal(a.parts, b.parts, Same);
}

int WeightOf(const Expression& expression) {
  int weight = 1;
  for (const Expression& part : expression.parts) weight += WeightOf(part);
  return weight;
}

bool IsEmptyText(const Expression& expression) {
  return expression.kind == Kind::kLiteral && expression.literal.empty();
}

Expression EmptyText() { return {.kind = Kind::kLiteral}; }

Expression Repeat(Expression part, int min, int max) {
  if (min == 1 && max == 1) return part;
  if (max == 0 || IsEmptyText(part)) return EmptyText();
  Expression repeat{.kind = Kind::kRepeat, .min = min, .max = max};
  repeat.parts.push_back(std::move(part));
  return repeat;
}

Expression Sequence(std::vector<Expression> parts) {
  if (parts.empty()) return EmptyText();
  if (parts.size() == 1) return std::move(parts.front());
  return {.kind = Kind::kSequence, .parts = std::move(parts)};
}

// How often a part is repeated; itself once where it is no repetition.
struct Counted {
  const Expression* part;
  std::int64_t min = 1;
  std::int64_t max = 1;  // kUnbounded as in Expression.
};

Counted CountedOf(const Expression& expression) {
  if (expression.kind != Kind::kRepeat) return {&expression};
  return {&expression.parts[0], expression.min, expression.max};
}

bool IsUnbounded(std::int64_t max) { return max == Expression::kUnbounded; }

class Simplifier {
 public:
  Simplifier(const Grammar& grammar, const RuleAnalysis& analysis)
      : analysis_(analysis), grammar_(grammar) {}

  Grammar Run() {
    // Rules that a rule calls first come before it, so what stands for them is known.
    const auto& order = analysis_.call_order;
    for (auto rule = order.rbegin(); rule != order.rend(); ++rule) {
      Expression simple = Simple(grammar_.rules[*rule].body);
      grammar_.rules[*rule].body = std::move(simple);
    }
    return std::move(grammar_);
  }

 private:
  Expression Simple(Expression expression) const {
    for (Expression& part : expression.parts) part = Simple(std::move(part));
    switch (expression.kind) {
      case Kind::kSequence:
        return SimpleSequence(std::move(expression.parts));
      case Kind::kChoice:
        return SimpleChoice(std::move(expression));
      case Kind::kRepeat:
        return SimpleRepeat(std::move(expression.parts[0]), expression.min, expression.max);
      default:
        return expression;
    }
  }

  Expression SimpleSequence(std::vector<Expression> parts) const {
    std::vector<Expression> joined;
    for (Expression& part : parts) {
      if (IsEmptyText(part)) continue;
      if (joined.empty() || !Join(part, &joined.back())) joined.push_back(std::move(part));
    }
    return Sequence(std::move(joined));
  }

  // x{a,b} x{c,d} is x{a+c,b+d}.
  bool Join(const Expression& next, Expression* last) const {
    const Counted a = Look(*last);
    const Counted b = Look(next);
    // Two literals are as good as one that is repeated.
    const bool literals = last->kind != Kind::kRepeat && last->kind != Kind::kRule;
    if ((literals && next.kind == last->kind) || !Same(*a.part, *b.part)) return false;
    const bool unbounded = IsUnbounded(a.max) || IsUnbounded(b.max);
    return Recount(a.min + b.min, unbounded ? Expression::kUnbounded : a.max + b.max, last);
  }

  // x{a,b} | x{c,d} is x{a,d} where there is no gap between.
  bool Unite(const Expression& next, Expression* known) const {
    Counted a = Look(*known);
    Counted b = Look(next);
    if (!Same(*a.part, *b.part)) return false;
    if (b.min < a.min) std::swap(a, b);
    if (!IsUnbounded(a.max) && a.max + 1 < b.min) return false;
    const bool unbounded = IsUnbounded(a.max) || IsUnbounded(b.max);
    return Recount(a.min, unbounded ? Expression::kUnbounded : std::max(a.max, b.max), known);
  }

  // Through a rule that only repeats something small.
  Counted Look(const Expression& expression) const {
    return CountedOf(expression.kind == Kind::kRule ? Expanded(expression, 1, 1) : expression);
  }

  // Makes `expression`, a part that may be repeated, repeat it otherwise, unless that is too often.
  bool Recount(std::int64_t min, std::int64_t max, Expression* expression) const {
    if (std::max(min, max) > kMaxRepetitions) return false;
    Expression part = *Look(*expression).part;
    *expression = SimpleRepeat(std::move(part), static_cast<int>(min), static_cast<int>(max));
    return true;
  }

  void AddAlternative(Expression part, bool compares, std::vector<Expression>* parts) const {
    for (auto known = parts->begin(); compares && known != parts->end();) {
      if (Unite(*known, &part)) {
        parts->erase(known);
        known = parts->begin();  // What is now wider may unite with what it left a gap to.
      } else {
        ++known;
      }
    }
    parts->push_back(std::move(part));
  }

  Expression SimpleChoice(Expression choice) const {
    const bool compares = choice.parts.size() <= kMaxComparedAlternatives;
    bool empty = false;
    std::vector<Expression> parts;
    for (Expression& part : choice.parts) {
      if (IsEmptyText(part)) {
        empty = true;
      } else {
        AddAlternative(std::move(part), compares, &parts);
      }
    }
    if (parts.empty()) return EmptyText();
    choice.parts = std::move(parts);
    Expression rest = choice.parts.size() == 1 ? std::move(choice.parts[0]) : std::move(choice);
    return empty ? SimpleRepeat(std::move(rest), 0, 1) : rest;
  }

  Expression SimpleRepeat(Expression part, int min, int max) const {
    if (max == 0) return EmptyText();
    if (min == 1 && max == 1) return part;
    if (part.kind == Kind::kRule) part = Expanded(part, min, max);
    if (analysis_.Nullable(part)) {
      // Copies that match nothing need not be there.
      min = 0;
      if (auto full = WithoutEmpty(part)) part = std::move(*full);
    }
    if (part.kind != Kind::kRepeat) return Repeat(std::move(part), min, max);
    // (x{a,b}){min,max} is one repetition where the counts of one more copy leave no gap.
    const Counted inner = CountedOf(part);
    const std::int64_t first = std::max(min, 1);
    const bool whole = max == min || max == 1 || IsUnbounded(inner.max) ||
                       first * inner.max + 1 >= (first + 1) * inner.min;
    const bool from_none = min > 0 || inner.min <= 1;
    const bool unbounded = IsUnbounded(max) || IsUnbounded(inner.max);
    const std::int64_t low = min * inner.min;
    const std::int64_t high = unbounded ? Expression::kUnbounded : max * inner.max;
    if (!whole || !from_none || std::max(low, high) > kMaxRepetitions) {
      return Repeat(std::move(part), min, max);
    }
    Expression innermost = *inner.part;
    return Repeat(std::move(innermost), static_cast<int>(low), static_cast<int>(high));
  }

  // The body of a rule that only repeats something small, where `min` to `max` copies of it are not
  // too many; else the rule.
  const Expression& Expanded(const Expression& rule, int min, int max) const {
    const Expression& body = grammar_.rules[rule.rule].body;
    const Counted inner = CountedOf(body);
    const auto copies = [](std::int64_t low, std::int64_t high) {
      return IsUnbounded(high) ? low : high;
    };
    const bool few = copies(min, max) * copies(inner.min, inner.max) <= kMaxExpandedCopies;
    const bool small =
        inner.part->kind == Kind::kRule ||
        (inner.part->kind == Kind::kClass && inner.part->ranges.size() <= kMaxExpandedRanges) ||
        (inner.part->kind == Kind::kLiteral && inner.part->literal.size() <= kMaxExpandedBytes);
    return few && small ? body : rule;
  }

  // What `expression`, which may be empty, matches besides nothing; none where that would be
  // large or would need rules of its own.
  std::optional<Expression> WithoutEmpty(const Expression& expression) const {
    if (!analysis_.Nullable(expression)) return expression;
    switch (expression.kind) {
      case Kind::kChoice:
        return ChoiceWithoutEmpty(expression);
      case Kind::kSequence:
        return SequenceWithoutEmpty(expression);
      case Kind::kRepeat:
        if (analysis_.Nullable(expression.parts[0])) return std::nullopt;
        return Repeat(expression.parts[0], 1, expression.max);
      default:
        return std::nullopt;
    }
  }

  std::optional<Expression> ChoiceWithoutEmpty(const Expression& choice) const {
    Expression full{.kind = Kind::kChoice};
    for (const Expression& part : choice.parts) {
      std::optional<Expression> own = WithoutEmpty(part);
      if (!own.has_value()) return std::nullopt;
      full.parts.push_back(std::move(*own));
    }
    return full;
  }

  // x y, both optional, is x' y | y' where x' and y' are not empty.
  std::optional<Expression> SequenceWithoutEmpty(const Expression& sequence) const {
    const auto& parts = sequence.parts;
    if (parts.size() > kMaxOptionalParts || WeightOf(sequence) > kMaxCopiedWeight) {
      return std::nullopt;
    }
    Expression full{.kind = Kind::kChoice};
    for (auto first = parts.begin(); first != parts.end(); ++first) {
      std::optional<Expression> own = WithoutEmpty(*first);
      if (!own.has_value()) return std::nullopt;
      std::vector<Expression> alternative = {std::move(*own)};
      alternative.insert(alternative.end(), first + 1, parts.end());
      full.parts.push_back(Sequence(std::move(alternative)));
    }
    return full;
  }

  const RuleAnalysis& analysis_;
  Grammar grammar_;
};

}  // namespace

Grammar Simplify(const Grammar& grammar, const RuleAnalysis& analysis) {
  return Simplifier(grammar, analysis).Run();
}

}  // namespace foretoken
