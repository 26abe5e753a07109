#include <fmt/core.h>

#include <algorithm>

#include "grammar/grammar_text.h"
#include "grammar/json/scalar_language.h"
#include "grammar/json/schema_writer.h"

namespace foretoken {
namespace {

// Different values of "uniqueItems": which of them are there already has to be remembered.
constexpr std::size_t kMaxUniqueValues = 10;
constexpr int kMaxCounted = 500;  // Items that are counted one by one.

}  // namespace

Expression SchemaWriter::Array(const Demands& demands) {
  Items items{.count = demands.items};
  if (items.count.max >= 0 && items.count.max < items.count.min) return ChoiceOf({});
  for (const Json* schema : demands.arrays) {
    if (!schema->contains("prefixItems")) continue;
    items.fixed = std::max(items.fixed, static_cast<int>((*schema)["prefixItems"].size()));
  }
  if (!demands.positions.empty()) {
    items.fixed = std::max(items.fixed, demands.positions.rbegin()->first + 1);
  }
  const bool unique = demands.unique != nullptr && (items.count.max < 0 || items.count.max > 1);
  Expression content;
  if (unique) {
    content = UniqueItems(demands, &items);
  } else if (!demands.contains.empty()) {
    content = ContainingItems(demands, &items);
  } else if (demands.arrays.empty() && demands.positions.empty() && items.count.free()) {
    return grammar_.Rule(JsonGrammar::kArray);
  } else {
    content = PlainItems(demands, items);
  }
  return SequenceOf(
      {LiteralOf("["), grammar_.Rule(JsonGrammar::kSpace), std::move(content), LiteralOf("]")});
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
  const Expression space = grammar_.Rule(JsonGrammar::kSpace);
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
  const Expression space = grammar_.Rule(JsonGrammar::kSpace);
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

// The state is the set of the values that are there already.
Expression SchemaWriter::UniqueItems(const Demands& demands, Items* items) {
  const auto refuse = [&] {
    document_.Refuse(*demands.unique,
                     fmt::format("'uniqueItems' is supported only for items that are one of {} "
                                 "values at most (and no lists or objects), without 'contains'",
                                 kMaxUniqueValues));
  };
  if (!demands.contains.empty()) refuse();
  std::vector<Json> values;
  std::vector<std::vector<bool>> allowed;  // By position and value.
  for (int position = 0; position <= items->fixed; ++position) {
    if (position == items->count.max) break;
    allowed.emplace_back(kMaxUniqueValues, false);
    for (const Demands& way :
         WaysTo(NormalGoal(ItemGoal(demands, position), &document_), &document_)) {
      const auto found = FiniteValues(way, kMaxUniqueValues, document_);
      if (!found.has_value()) refuse();
      for (const Json& value : *found) {
        const auto at = std::ranges::find(values, value) - values.begin();
        if (at == std::ssize(values)) values.push_back(value);
        if (values.size() > kMaxUniqueValues) refuse();
        allowed.back()[at] = true;
      }
    }
  }
  const auto choices = [&](int position, int state) {
    std::vector<Item> list;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int bit = 1 << i;
      if ((state & bit) != 0 || !allowed[std::min(position, items->fixed)][i]) continue;
      list.push_back({ValuePart(values[i]), state | bit});
    }
    return list;
  };
  return CountedItems(
      0, 0, choices, [](int) { return true; }, items);
}

}  // namespace foretoken
