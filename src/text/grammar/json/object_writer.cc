#include <fmt/core.h>

#include <algorithm>

#include "text/grammar/grammar_text.h"
#include "text/grammar/json/scalar_language.h"
#include "text/grammar/json/schema_writer.h"

namespace foretoken {
namespace {

// Sets of names that are told apart by the patterns of "patternProperties".
constexpr std::size_t kMaxNameSets = 64;
// Characters of all declared names, beyond which others are not let through beside them.
constexpr std::size_t kMaxNameCharacters = 2000;

bool HasName(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Expression Key(const std::string& name) { return LiteralOf(Json(name).dump() + ":"); }

}  // namespace

Expression SchemaWriter::Object(const Demands& demands) {
  const bool any = demands.objects.empty() && demands.names.empty() && demands.required.empty() &&
                   demands.absent.empty() && demands.properties.free();
  if (any) return Base(JsonGrammar::kObject);

  std::vector<std::string> names;
  std::set<std::string> seen;
  const auto add = [&](const std::string& name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  for (const Json* schema : demands.objects) {
    if (!schema->contains("properties")) continue;
    for (const auto& [name, member] : (*schema)["properties"].items()) add(name);
  }
  for (const std::string& name : demands.required) add(name);

  RegularLanguage allowed;
  for (const Json* schema : demands.names) {
    allowed = document_.Take(allowed.Intersect(NameLanguage({{schema, false}})), *schema,
                             "'propertyNames'");
  }
  const std::set<std::string> required(demands.required.begin(), demands.required.end());
  Members members{.count = demands.properties};
  members.enough = std::max({1, members.count.min, members.count.max});
  for (const std::string& name : names) {
    const bool absent = HasName(demands.absent, name) || !allowed.Has(name);
    if (absent && required.contains(name)) return ChoiceOf({});
    if (absent) continue;
    document_.Spend(kSchemaStep + name.size());
    members.named.push_back(
        {SequenceOf({Key(name), grammar_.Space(), Value(MemberGoal(demands, name))}),
         required.contains(name)});
  }
  for (const std::string& name : demands.absent) add(name);
  const bool full = members.count.max >= 0 && std::ssize(required) >= members.count.max;
  members.other = full ? ChoiceOf({}) : OtherMembers(demands, names);
  return SequenceOf(
      {LiteralOf("{"), grammar_.Space(), MembersFrom(0, 0, &members), LiteralOf("}")});
}

// All that the schemas say of a member of this name.
Goal SchemaWriter::MemberGoal(const Demands& demands, const std::string& name) {
  Goal goal;
  for (const Json* schema : demands.objects) {
    bool named = false;
    if (schema->contains("properties")) {
      const auto found = (*schema)["properties"].find(name);
      named = found != (*schema)["properties"].end();
      if (named) goal.push_back({&*found, false});
    }
    if (schema->contains("patternProperties")) {
      for (const auto& [pattern, member] : (*schema)["patternProperties"].items()) {
        if (!PatternLanguage(pattern, *schema).Has(name)) continue;
        named = true;
        goal.push_back({&member, false});
      }
    }
    if (!named && schema->contains("additionalProperties")) {
      goal.push_back({&(*schema)["additionalProperties"], false});
    }
  }
  if (const auto more = demands.members.find(name); more != demands.members.end()) {
    goal.insert(goal.end(), more->second.begin(), more->second.end());
  }
  return goal;
}

const RegularLanguage& SchemaWriter::PatternLanguage(const std::string& pattern,
                                                     const Json& schema) {
  const auto [known, added] = patterns_.try_emplace(pattern);
  if (added) {
    const auto parsed = ParsePattern(pattern);
    if (!parsed.ok()) document_.Refuse(schema, parsed.error().message);
    known->second = document_.Take(LanguageOf(*parsed, false), schema,
                                   fmt::format("the pattern '{}'", pattern));
  }
  return known->second;
}

RegularLanguage SchemaWriter::NameLanguage(const Goal& goal) {
  const Json& schema = *goal[0].schema;
  RegularLanguage language = RegularLanguage().Complement();
  for (const Demands& demands : WaysTo(goal, &document_)) {
    if ((demands.types & kStringType) == 0) continue;
    RegularLanguage way;
    if (demands.values.has_value()) {
      std::vector<std::string> texts;
      for (const Json& value : ListedValues(demands, document_)) {
        if (value.is_string()) texts.push_back(value);
      }
      way = document_.Take(RegularLanguage::OfTexts(texts), schema, "'propertyNames'");
    } else {
      way = StringLanguage(demands, document_);
    }
    language = document_.Take(language.Unite(way), schema, "'propertyNames'");
  }
  return language;
}

// A member whose name is none of `names`, as the patterns that match its name have it.
Expression SchemaWriter::OtherMembers(const Demands& demands,
                                      const std::vector<std::string>& names) {
  struct NameSet {
    RegularLanguage language;
    Goal goal;
    std::set<const Json*> matched;  // The schemas one of whose patterns matches.
  };
  std::vector<NameSet> sets(1);
  for (const Json* schema : demands.names) {
    sets[0].language = document_.Take(sets[0].language.Intersect(NameLanguage({{schema, false}})),
                                      *schema, "'propertyNames'");
  }
  const auto part = [&](const RegularLanguage& a, const RegularLanguage& b, const Json& schema) {
    document_.Spend(a.states().size() + b.states().size());
    return document_.Take(a.Intersect(b), schema, "'patternProperties'");
  };
  for (const Json* schema : demands.objects) {
    if (!schema->contains("patternProperties")) continue;
    for (const auto& [pattern, member] : (*schema)["patternProperties"].items()) {
      const RegularLanguage& matching = PatternLanguage(pattern, *schema);
      std::vector<NameSet> finer;
      for (NameSet& set : sets) {
        NameSet with{part(set.language, matching, *schema), set.goal, set.matched};
        with.goal.push_back({&member, false});
        with.matched.insert(schema);
        if (!with.language.empty()) finer.push_back(std::move(with));
        set.language = part(set.language, matching.Complement(), *schema);
        if (!set.language.empty()) finer.push_back(std::move(set));
      }
      sets = std::move(finer);
      if (sets.size() > kMaxNameSets) {
        document_.Refuse(*schema, fmt::format("'patternProperties' tells more than {} sets of "
                                              "names apart",
                                              kMaxNameSets));
      }
    }
  }
  std::size_t characters = 0;
  for (const std::string& name : names) characters += name.size();
  std::optional<RegularLanguage> free;  // Made where it is needed.
  std::vector<Expression> choices;
  for (NameSet& set : sets) {
    for (const Json* schema : demands.objects) {
      if (set.matched.contains(schema) || !schema->contains("additionalProperties")) continue;
      set.goal.push_back({&(*schema)["additionalProperties"], false});
    }
    const bool never = std::ranges::any_of(
        set.goal, [](const Conjunct& conjunct) { return *conjunct.schema == false; });
    if (never || characters > kMaxNameCharacters) continue;
    if (!names.empty() && !free.has_value()) {
      document_.Spend(characters);
      free = document_.Take(RegularLanguage::OfTexts(names), document_.root(), "'properties'")
                 .Complement();
    }
    const RegularLanguage left =
        free.has_value() ? part(set.language, *free, document_.root()) : set.language;
    if (left.empty()) continue;
    const Expression key = left.full() ? Base(JsonGrammar::kString)
                                       : document_.Take(grammar_.NameOf(left), document_.root(),
                                                        "the names of further properties");
    choices.push_back(SequenceOf({key, LiteralOf(":"), grammar_.Space(), Value(set.goal)}));
  }
  return choices.empty() ? ChoiceOf({}) : RuleOf(NewRule(ChoiceOf(std::move(choices))));
}

// The members from `index` on, where `count` are there already.
Expression SchemaWriter::MembersFrom(std::size_t index, int count, Members* members) {
  std::vector<Expression> parts;
  const auto add_member = [&](const Expression& text) {
    if (count > 0) {
      parts.push_back(LiteralOf(","));
      parts.push_back(grammar_.Space());
    }
    parts.push_back(text);
    count = std::min(count + 1, members->enough);
  };
  for (; index < members->named.size() && members->named[index].required; ++index) {
    if (count == members->count.max) return ChoiceOf({});
    add_member(members->named[index].text);
  }
  if (index == members->named.size()) {
    parts.push_back(OthersFrom(count, members));
    return SequenceOf(std::move(parts));
  }
  // An optional member: a rule tells whether it is there.
  const auto [known, added] = members->rules.try_emplace({index, count}, -1);
  if (added) {
    const int rule = known->second = NewRule(ChoiceOf({}));
    std::vector<Expression> before = std::move(parts);
    const int before_count = count;
    parts.clear();
    std::vector<Expression> choices;
    if (count != members->count.max) {
      add_member(members->named[index].text);
      parts.push_back(MembersFrom(index + 1, count, members));
      choices.push_back(SequenceOf(std::move(parts)));
    }
    choices.push_back(MembersFrom(index + 1, before_count, members));
    grammar_.SetBody(rule, ChoiceOf(std::move(choices)));
    parts = std::move(before);
    parts.push_back(RuleOf(rule));
    return SequenceOf(std::move(parts));
  }
  parts.push_back(RuleOf(known->second));
  return SequenceOf(std::move(parts));
}

// Members with other names, and the end.
Expression SchemaWriter::OthersFrom(int count, Members* members) {
  const auto [known, added] = members->rules.try_emplace({members->named.size(), count}, -1);
  if (!added) return RuleOf(known->second);
  const int rule = known->second = NewRule(ChoiceOf({}));
  std::vector<Expression> choices;
  const Expression space = grammar_.Space();
  if (count >= members->count.min) choices.push_back(count == 0 ? LiteralOf("") : space);
  if (count != members->count.max) {
    std::vector<Expression> parts;
    if (count > 0) parts = {LiteralOf(","), space};
    parts.push_back(members->other);
    parts.push_back(OthersFrom(std::min(count + 1, members->enough), members));
    choices.push_back(SequenceOf(std::move(parts)));
  }
  grammar_.SetBody(rule, ChoiceOf(std::move(choices)));
  return RuleOf(rule);
}

}  // namespace foretoken
