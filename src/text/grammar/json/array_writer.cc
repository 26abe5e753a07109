#include <fmt/core.h>

#include <algorithm>

#include "base/numbers/integers.h"
#include "text/grammar/grammar_text.h"
#include "text/grammar/json/scalar_language.h"
#include "text/grammar/json/schema_writer.h"

namespace foretoken {
namespace {

// Up to so many different values of "uniqueItems" are remembered by the grammar itself.
constexpr std::size_t kFewValues = 10;
constexpr std::size_t kManyValues = 1000;  // Not counted further: no list is so long.
constexpr int kMaxCounted = 500;           // Items that are counted one by one.

}  // namespace

Expression SchemaWriter::Array(const Demands& demands) {
  Items items{.count = demands.items};
  if (items.count.max >= 0 && items.count.max < items.count.min) return ChoiceOf({});
  for (const Json* schema : demands.arrays) {
    if (!schema->contains("prefixItems")) continue;
    items.fixed = std::max(items.fixed, Int((*schema)["prefixItems"].size()));
  }
  if (!demands.positions.empty()) {
    items.fixed = std::max(items.fixed, demands.positions.rbegin()->first + 1);
  }
  if (demands.unique != nullptr && (items.count.max < 0 || items.count.max > 1)) {
    return UniqueList(demands, &items);
  }
  const bool any = demands.contains.empty() && demands.arrays.empty() &&
                   demands.positions.empty() && items.count.free();
  if (any) return Base(JsonGrammar::kArray);
  return List(LiteralOf("["), SomeItems(demands, &items));
}

Expression SchemaWriter::List(Expression begin, Expression items) {
  return SequenceOf({std::move(begin), grammar_.Space(), std::move(items), LiteralOf("]")});
}

Expression SchemaWriter::SomeItems(const Demands& demands, Items* items) {
  return demands.contains.empty() ? PlainItems(demands, *items) : ContainingItems(demands, items);
}

// All that the schemas say of the item at a position.
Goal SchemaWriter::ItemGoal(const Demands& demands, int position) {
  Goal goal;
  for (const Json* schema : demands.arrays) {
    const auto prefix = schema->find("prefixItems");
    if (prefix != schema->end() && position < std::ssize(*prefix)) {
      goal.push_back({&(*prefix)[position], false});
    } else if (schema->contains("items")) {
      goal.push_back({&(*schema)["items"], false});
    }
  }
  if (const auto more = demands.positions.find(position); more != demands.positions.end()) {
    goal.insert(goal.end(), more->second.begin(), more->second.end());
  }
  return goal;
}

Expression SchemaWriter::PlainItems(const Demands& demands, const Items& items) {
  const Expression space = grammar_.Space();
  const auto [min, max] = items.count;
  // From the back: what may come after the items so far, the first of which needs no comma.
  const int first_alike = std::max(items.fixed, 1);
  Expression rest =
      RepeatOf(SequenceOf({LiteralOf(","), space, Value(ItemGoal(demands, first_alike))}),
               std::max(0, min - first_alike),
               max < 0 ? Expression::kUnbounded : std::max(0, max - first_alike));
  for (int position = first_alike - 1; position >= 0; --position) {
    if (max >= 0 && position >= max) {
      rest = LiteralOf("");
      continue;
    }
    std::vector<Expression> parts;
    if (position > 0) parts = {LiteralOf(","), space};
    parts.push_back(Value(ItemGoal(demands, position)));
    parts.push_back(std::move(rest));
    if (position == 0) parts.push_back(space);
    rest = SequenceOf(std::move(parts));
    if (position >= min) rest = ChoiceOf({std::move(rest), LiteralOf("")});
    rest = RuleOf(NewRule(std::move(rest)));
  }
  return rest;
}

// The items from a position on. `choices(position, state)` lists the items that may stand there and
// the states that they lead to; `may_end(state)` tells whether the list may end.
template <typename Choices, typename MayEnd>
Expression SchemaWriter::CountedItems(int position, int state, Choices choices, MayEnd may_end,
                                      Items* items) {
  const auto [min, max] = items->count;
  // The first item has no comma before it; those after the last that differs are all alike.
  position = std::min(position, max < 0 ? std::max({1, items->fixed, min}) : max);
  const auto [known, added] = items->rules.try_emplace({position, state}, -1);
  if (!added) return RuleOf(known->second);
  if (items->depth > kMaxCounted) {
    document_.Refuse(document_.root(),
                     fmt::format("'contains' and 'uniqueItems' beside counts above {} are not "
                                 "supported",
                                 kMaxCounted));
  }
  ++items->depth;
  const int rule = known->second = NewRule(ChoiceOf({}));
  const Expression space = grammar_.Space();
  std::vector<Expression> parts;
  if (position >= min && may_end(state)) parts.push_back(position == 0 ? LiteralOf("") : space);
  if (position != max) {
    for (const Item& item : choices(position, state)) {
      std::vector<Expression> text;
      if (position > 0) text = {LiteralOf(","), space};
      text.push_back(item.text);
      text.push_back(CountedItems(position + 1, item.state, choices, may_end, items));
      parts.push_back(SequenceOf(std::move(text)));
    }
  }
  --items->depth;
  grammar_.SetBody(rule, ChoiceOf(std::move(parts)));
  return RuleOf(rule);
}

// The state is how many items that count there are so far.
Expression SchemaWriter::ContainingItems(const Demands& demands, Items* items) {
  const ContainsDemand& contains = demands.contains[0];
  if (demands.contains.size() > 1) {
    document_.Refuse(*demands.contains[1].schema,
                     "a second 'contains' for the same list is not "
                     "supported");
  }
  const int min = contains.count.min;
  const int max = contains.count.max;
  // Below a greatest number all items that count must be counted, else as many as are needed.
  Goal others;
  if (max >= 0) {
    const Json& negated = document_.Reworded(*contains.schema, [&] {
      Json all = Json::array();
      for (const Conjunct& one : contains.goal) {
        all.push_back(one.negated ? Json{{"not", *one.schema}} : *one.schema);
      }
      return Json{{"allOf", all}};
    });
    others = {{&negated, true}};
  }
  const auto choices = [&](int position, int state) {
    const Goal goal = ItemGoal(demands, position);
    const auto with = [&](const Goal& more) {
      Goal both = goal;
      both.insert(both.end(), more.begin(), more.end());
      return Value(both);
    };
    std::vector<Item> list{{with(others), state}};
    if (state < (max < 0 ? min : max)) list.push_back({with(contains.goal), state + 1});
    return list;
  };
  return CountedItems(
      0, 0, choices, [&](int state) { return state >= min; }, items);
}

// A list no two of whose items are alike. Where they have few values the rules of the grammar tell
// which are there, else UniqueLists does.
Expression SchemaWriter::UniqueList(const Demands& demands, Items* items) {
  const std::vector<std::optional<Values>> values = ItemValues(demands, *items);
  if (demands.contains.empty()) {
    if (auto few = FewUniqueItems(values, items)) return List(LiteralOf("["), std::move(*few));
  }
  for (int position = 0; position < std::ssize(values); ++position) {
    // The items before the one that finds the fewest values left.
    const int before = position < items->fixed ? position : items->count.min - 1;
    if (!values[position].has_value() || position >= items->count.min) continue;
    const auto count = std::ssize(*values[position]);
    if (count > before) continue;
    document_.Refuse(*demands.unique,
                     fmt::format("'uniqueItems' asks for {} items that differ, but one of them has "
                                 "only {} values",
                                 before + 1, count));
  }
  const Spelling outer = spelling_;
  spelling_ = Spelling::kOne;
  Expression content = SomeItems(demands, items);
  spelling_ = outer;
  return List({.kind = Expression::Kind::kBeginUnique}, std::move(content));
}

// The values that the item at each position may have, the last for all from there on; nullopt where
// they are many or not known.
std::vector<std::optional<SchemaWriter::Values>> SchemaWriter::ItemValues(const Demands& demands,
                                                                          const Items& items) {
  std::vector<std::optional<Values>> by_position;
  for (int position = 0; position <= items.fixed && position != items.count.max; ++position) {
    std::optional<Values> values = Values();
    for (const Demands& way :
         WaysTo(NormalGoal(ItemGoal(demands, position), &document_), &document_)) {
      std::optional<Values> found;
      try {
        found = FiniteValues(way, kManyValues, document_);
      } catch (const SchemaRefusal&) {  // Too much to list.
      }
      if (!found.has_value()) values.reset();
      if (!values.has_value()) break;
      for (Json& value : *found) {
        if (std::ranges::find(*values, value) == values->end()) values->push_back(std::move(value));
      }
    }
    by_position.push_back(std::move(values));
  }
  return by_position;
}

// The state is the set of the values that are there already. Nothing where the values are many.
std::optional<Expression> SchemaWriter::FewUniqueItems(
    const std::vector<std::optional<Values>>& by_position, Items* items) {
  Values values;
  std::vector<std::vector<bool>> allowed;  // By position and value.
  for (const std::optional<Values>& some : by_position) {
    if (!some.has_value()) return std::nullopt;
    allowed.emplace_back(kFewValues, false);
    for (const Json& value : *some) {
      const auto at = std::ranges::find(values, value) - values.begin();
      if (at == std::ssize(values)) values.push_back(value);
      if (values.size() > kFewValues) return std::nullopt;
      allowed.back()[at] = true;
    }
  }
  const auto choices = [&](int position, int state) {
    std::vector<Item> list;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int bit = 1 << i;
      if ((state & bit) != 0 || !allowed[std::min(position, items->fixed)][i]) continue;
      list.push_back({ValuePart(values[i], spelling_), state | bit});
    }
    return list;
  };
  return CountedItems(
      0, 0, choices, [](int) { return true; }, items);
}

}  // namespace foretoken
