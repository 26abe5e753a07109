#include "text/grammar/automaton/rule_analysis.h"

#include <algorithm>
#include <functional>
#include <string>

#include "base/text/utf8.h"

namespace foretoken {
namespace {

using Kind = Expression::Kind;

// A rule is expanded in place if it matches no more bytes, as an escaped character does.
constexpr int kMaxInPlaceBytes = 8;
constexpr int kMaxInPlaceWeight = 64;
// Bounds the work for rules that refer to one another in nested circles.
constexpr int kMaxSweeps = 200;

int Saturate(std::int64_t value, int most) { return std::min<std::int64_t>(value, most); }

// Whether something holds for an expression, given the rules for which it does and whether it does
// for a literal or a class.
template <typename Leaf>
bool Holds(const Expression& expression, const std::vector<bool>& rules, const Leaf& leaf) {
  const auto part_holds = [&](const Expression& part) { return Holds(part, rules, leaf); };
  switch (expression.kind) {
    case Kind::kRule:
      return rules[expression.rule];
    case Kind::kSequence:
      return std::ranges::all_of(expression.parts, part_holds);
    case Kind::kChoice:
      return std::ranges::any_of(expression.parts, part_holds);
    case Kind::kRepeat:
      return expression.min == 0 || part_holds(expression.parts[0]);
    default:
      return leaf(expression);
  }
}

// The text can end: some choice of alternatives leads to no rule of which that is not known.
bool Ends(const Expression& expression, const std::vector<bool>& rule_ends) {
  return Holds(expression, rule_ends, [](const Expression&) { return true; });
}

// Calls `visit` with every rule of `expression`; with `first_only` those before any byte.
void VisitRules(const Expression& expression, const RuleAnalysis* first_only,
                const std::function<void(int)>& visit) {
  if (expression.kind == Kind::kRule) visit(expression.rule);
  for (const Expression& part : expression.parts) {
    VisitRules(part, first_only, visit);
    if (first_only != nullptr && expression.kind == Kind::kSequence &&
        !first_only->Nullable(part)) {
      return;
    }
  }
}

// Bytes matched at most, and about how many instructions that takes.
struct Extent {
  int bytes = 0;
  int weight = 0;
};

constexpr Extent kLarge{kMaxInPlaceBytes + 1, kMaxInPlaceWeight + 1};

Extent Measure(const Expression& expression, const std::vector<Extent>& rules) {
  if (expression.kind == Kind::kRule) return rules[expression.rule];
  Extent extent;
  if (expression.kind == Kind::kLiteral) {
    extent.bytes = Saturate(std::ssize(expression.literal), kLarge.bytes);
    extent.weight = extent.bytes;
  } else if (expression.kind == Kind::kClass) {
    extent.bytes = Utf8Length(expression.ranges.back().last);
    extent.weight = Saturate(2 * std::ssize(expression.ranges), kLarge.weight);
  } else if (expression.kind == Kind::kBeginUnique) {
    extent = {.bytes = 1, .weight = 1};
  }
  const std::int64_t copies = expression.kind != Kind::kRepeat           ? 1
                              : expression.max == Expression::kUnbounded ? kLarge.bytes
                                                                         : expression.max;
  for (const Expression& part : expression.parts) {
    const Extent own = Measure(part, rules);
    const int bytes = Saturate(own.bytes * copies, kLarge.bytes);
    extent.bytes = expression.kind == Kind::kChoice ? std::max(extent.bytes, bytes)
                                                    : Saturate(extent.bytes + bytes, kLarge.bytes);
    extent.weight = Saturate(extent.weight + own.weight * copies, kLarge.weight);
  }
  return extent;
}

// Depth-first over a graph of rules, without recursion: texts can chain thousands of them.
class RuleWalk {
 public:
  using Edges = std::vector<std::vector<int>>;

  explicit RuleWalk(const Edges& edges) : edges_(edges), color_(edges.size(), Color::kNew) {}

  // Appends the rules reachable from `rule`, each behind those it leads to. False at a cycle.
  bool Visit(int rule) {
    if (color_[rule] != Color::kNew) return true;
    bool acyclic = true;
    stack_ = {{rule, 0}};
    color_[rule] = Color::kOpen;
    while (!stack_.empty()) {
      auto& [current, next] = stack_.back();
      if (next == edges_[current].size()) {
        color_[current] = Color::kDone;
        order_.push_back(current);
        stack_.pop_back();
        continue;
      }
      const int target = edges_[current][next++];
      if (color_[target] == Color::kOpen && acyclic) {
        acyclic = false;
        NoteCycle(target);
      } else if (color_[target] == Color::kNew) {
        color_[target] = Color::kOpen;
        stack_.emplace_back(target, 0);
      }
    }
    return acyclic;
  }

  const std::vector<int>& order() const { return order_; }
  const std::vector<int>& cycle() const { return cycle_; }

 private:
  enum class Color { kNew, kOpen, kDone };

  void NoteCycle(int begin) {
    for (const auto& [rule, next] : stack_) {
      if (!cycle_.empty() || rule == begin) cycle_.push_back(rule);
    }
  }

  const Edges& edges_;
  std::vector<Color> color_;
  std::vector<std::pair<int, std::size_t>> stack_;
  std::vector<int> order_;
  std::vector<int> cycle_;
};

RuleWalk::Edges EdgesOf(const Grammar& grammar, const RuleAnalysis* first_only) {
  RuleWalk::Edges edges(grammar.rules.size());
  for (std::size_t rule = 0; rule < edges.size(); ++rule) {
    auto& out = edges[rule];
    VisitRules(grammar.rules[rule].body, first_only, [&](int target) { out.push_back(target); });
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }
  return edges;
}

// Raises the flags of rules until none changes. False where that takes too long.
bool Settle(const Grammar& grammar, const std::vector<int>& order, std::vector<bool>* flags,
            const std::function<bool(const Expression&)>& holds) {
  bool changed = true;
  for (int sweep = 0; changed; ++sweep) {
    if (sweep == kMaxSweeps) return false;
    changed = false;
    for (const int rule : order) {
      if ((*flags)[rule] || !holds(grammar.rules[rule].body)) continue;
      (*flags)[rule] = true;
      changed = true;
    }
  }
  return true;
}

Error LeftRecursion(const Grammar& grammar, const std::vector<int>& cycle) {
  std::string path;
  for (std::size_t i = 0; i < cycle.size() && i < 5; ++i) {
    path += grammar.rules[cycle[i]].name + " -> ";
  }
  path += (cycle.size() > 5 ? "... -> " : "") + grammar.rules[cycle[0]].name;
  return Invalid(
      "grammar: the rule '{}' comes back to itself before it has matched anything ({}): write left "
      "recursion as a repetition",
      grammar.rules[cycle[0]].name, path);
}

}  // namespace

bool RuleAnalysis::Nullable(const Expression& expression) const {
  return Holds(expression, nullable, [](const Expression& leaf) {
    return leaf.kind == Kind::kLiteral && leaf.literal.empty();
  });
}

Result<RuleAnalysis> AnalyzeRules(const Grammar& grammar) {
  const std::size_t count = grammar.rules.size();
  const RuleWalk::Edges uses = EdgesOf(grammar, nullptr);
  RuleWalk used(uses);
  (void)used.Visit(grammar.root);  // Cycles are what makes a grammar recursive.

  RuleAnalysis analysis{.nullable = std::vector<bool>(count, false),
                        .expandable = std::vector<bool>(count, false)};
  std::vector<bool> ends(count, false);
  const bool settled =
      Settle(grammar, used.order(), &ends, [&](const Expression& e) { return Ends(e, ends); }) &&
      Settle(grammar, used.order(), &analysis.nullable,
             [&](const Expression& e) { return analysis.Nullable(e); });
  if (!settled) {
    return InvalidInput("grammar: its rules refer to one another in too many nested circles");
  }
  for (const int rule : used.order()) {
    if (ends[rule]) continue;
    return Invalid(
        "grammar: the rule '{}' can never be matched to its end: each of its alternatives needs "
        "itself again",
        grammar.rules[rule].name);
  }

  const RuleWalk::Edges first_calls = EdgesOf(grammar, &analysis);
  RuleWalk calls(first_calls);
  for (const int rule : used.order()) {
    if (!calls.Visit(rule)) return LeftRecursion(grammar, calls.cycle());
  }
  analysis.call_order.assign(calls.order().rbegin(), calls.order().rend());

  // Rules come after those they use, except in circles, where some rule is still taken as large.
  std::vector<Extent> extents(count, kLarge);
  for (const int rule : used.order()) {
    extents[rule] = Measure(grammar.rules[rule].body, extents);
    analysis.expandable[rule] =
        extents[rule].bytes < kLarge.bytes && extents[rule].weight < kLarge.weight;
  }
  return analysis;
}

}  // namespace foretoken
