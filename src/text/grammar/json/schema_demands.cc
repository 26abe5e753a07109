#include "text/grammar/json/schema_demands.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "text/grammar/grammar.h"
#include "text/grammar/json/schema_combination.h"
#include "text/grammar/json/schema_draft.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxWays = 512;

bool Lists(const std::vector<Json>& values, const Json& value) {
  return std::ranges::find(values, value) != values.end();
}

class WayFinder {
 public:
  explicit WayFinder(SchemaDocument* document) : document_(document) {}

  std::vector<Demands> Find(const Goal& goal) {
    Draft draft;
    draft.todo = goal;
    std::reverse(draft.todo.begin(), draft.todo.end());  // It is taken from the end.
    Follow(std::move(draft));
    return std::move(ways_);
  }

 private:
  // Whether a schema that holds is to be taken apart, or one that does not.
  void Follow(Draft draft) {
    while (!draft.todo.empty()) {
      document_->Spend(kSchemaStep);
      const Conjunct next = draft.todo.back();
      draft.todo.pop_back();
      if (draft.seen.contains({next.schema, !next.negated})) return;  // It cannot be both.
      if (!draft.seen.insert(next).second) continue;
      const Json& schema = InNewWords(*next.schema);
      if (schema.is_boolean()) {
        if (schema.get<bool>() == next.negated) return;
        continue;
      }
      if (!schema.is_object()) document_->Refuse(schema, "a schema is an object, true or false");
      CheckKeywords(schema, *document_);
      next.negated ? Deny(schema, &draft, document_) : Affirm(schema, &draft);
      if (draft.demands.types == 0) return;
    }
    if (draft.forks.empty()) {
      if (ways_.size() == kMaxWays) {
        document_->Refuse(document_->root(),
                          fmt::format("its alternatives combine in more than {} ways", kMaxWays));
      }
      ways_.push_back(std::move(draft.demands));
      return;
    }
    const std::vector<Alternative> fork = std::move(draft.forks.back());
    draft.forks.pop_back();
    for (const Alternative& alternative : fork) {
      document_->Spend(10 * kSchemaStep);
      Draft copy = draft;
      alternative(&copy);
      if (copy.demands.types != 0) Follow(std::move(copy));
    }
  }

  // Older drafts have a list of schemas in "items", and "additionalItems" for those after.
  const Json& InNewWords(const Json& schema) {
    if (!schema.is_object() || !schema.contains("items") || !schema["items"].is_array()) {
      return schema;
    }
    return document_->Reworded(schema, [&] {
      document_->Spend(schema.dump().size());
      Json reworded = schema;
      reworded["prefixItems"] = schema["items"];
      reworded.erase("items");
      if (schema.contains("additionalItems")) reworded["items"] = schema["additionalItems"];
      reworded.erase("additionalItems");
      return reworded;
    });
  }

  void Affirm(const Json& schema, Draft* draft) {
    Demands& demands = draft->demands;
    demands.types &= TypesOf(schema, *document_);
    if (schema.contains("$ref")) draft->Add(document_->Resolve(schema), false);
    AffirmValues(schema, draft);
    AffirmCombinations(schema, draft);
    for (const char* const keyword : {"pattern", "format"}) {
      if (schema.contains(keyword)) demands.strings.push_back({&schema, keyword, false});
    }
    for (const char* const keyword :
         {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}) {
      if (schema.contains(keyword)) demands.numbers.push_back({&schema, keyword, false});
    }
    AffirmCount(schema, "minLength", "maxLength", &demands.length);
    AffirmObject(schema, draft);
    AffirmArray(schema, &demands);
  }

  void AffirmCount(const Json& schema, const char* min, const char* max, CountDemand* demand) {
    if (schema.contains(min))
      demand->AtLeast(LeastCount(SchemaCount(schema, min, *document_), schema, *document_));
    if (schema.contains(max))
      demand->AtMost(std::min(SchemaCount(schema, max, *document_), kMaxRepetitions));
  }

  void AffirmValues(const Json& schema, Draft* draft) {
    for (const char* const keyword : {"const", "enum"}) {
      if (schema.contains(keyword)) AffirmOneOf(ReadListed(schema, keyword, document_), draft);
    }
  }

  static void AffirmOneOf(const ListedParts& listed, Draft* draft) {
    const auto narrow = [scalars = listed.scalars](Draft* to) {
      auto& values = to->demands.values;
      if (values.has_value()) {
        std::erase_if(*values, [&](const Json& value) { return !Lists(scalars, value); });
      } else {
        values = scalars;
      }
      to->Only(values->empty() ? 0 : kAllTypes & ~(kObjectType | kArrayType));
    };
    if (listed.schemas.empty()) return narrow(draft);
    std::vector<Alternative> fork{narrow};
    for (const Json* whole : listed.schemas) {
      fork.emplace_back([whole](Draft* to) { to->Add(*whole, false); });
    }
    draft->forks.push_back(std::move(fork));
  }

  void AffirmCombinations(const Json& schema, Draft* draft) {
    if (schema.contains("allOf")) {
      for (std::size_t i = schema["allOf"].size(); i-- > 0;) draft->Add(schema["allOf"][i], false);
    }
    if (schema.contains("not")) draft->Add(schema["not"], true);
    if (schema.contains("anyOf")) {
      std::vector<Alternative> fork;
      for (const Json& part : schema["anyOf"]) {
        fork.emplace_back([&part](Draft* to) { to->Add(part, false); });
      }
      draft->forks.push_back(std::move(fork));
    }
    if (schema.contains("oneOf")) AffirmOneSchema(schema["oneOf"], draft);
    if (schema.contains("if")) {
      const Json& condition = schema["if"];
      std::vector<Alternative> fork;
      for (const bool negated : {false, true}) {
        const char* const branch = negated ? "else" : "then";
        const Json* const then = schema.contains(branch) ? &schema[branch] : nullptr;
        fork.emplace_back([&condition, negated, then](Draft* to) {
          to->Add(condition, negated);
          if (then != nullptr) to->Add(*then, false);
        });
      }
      if (schema.contains("then") || schema.contains("else")) {
        draft->forks.push_back(std::move(fork));
      }
    }
  }

  void AffirmOneSchema(const Json& schemas, Draft* draft) {
    std::vector<Alternative> fork;
    for (const Json& part : schemas) {
      Goal others;
      for (const Json& other : schemas) {
        if (&other != &part && !Disjoint(part, other, document_)) others.push_back({&other, true});
      }
      fork.emplace_back([&part, others](Draft* to) {
        to->todo.insert(to->todo.end(), others.begin(), others.end());
        to->Add(part, false);
      });
    }
    draft->forks.push_back(std::move(fork));
  }

  void AffirmObject(const Json& schema, Draft* draft) {
    Demands& demands = draft->demands;
    if (schema.contains("properties") || schema.contains("patternProperties") ||
        schema.contains("additionalProperties")) {
      demands.objects.push_back(&schema);
    }
    if (schema.contains("propertyNames")) demands.names.push_back(&schema["propertyNames"]);
    if (schema.contains("required")) {
      for (const Json& name : schema["required"]) draft->Require(name);
    }
    AffirmCount(schema, "minProperties", "maxProperties", &demands.properties);
    for (const char* const keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
      if (!schema.contains(keyword)) continue;
      for (const auto& [name, wanted] : schema[keyword].items()) {
        draft->forks.push_back({[name = name](Draft* to) { to->Without(name); },
                                [name = name, &wanted = wanted](Draft* to) {
                                  to->With(name);
                                  if (!wanted.is_array()) return to->Add(wanted, false);
                                  for (const Json& also : wanted) to->Require(also);
                                },
                                [](Draft* to) { to->Only(kAllTypes & ~kObjectType); }});
      }
    }
  }

  void AffirmArray(const Json& schema, Demands* demands) {
    if (schema.contains("items") || schema.contains("prefixItems")) {
      demands->arrays.push_back(&schema);
    }
    AffirmCount(schema, "minItems", "maxItems", &demands->items);
    if (schema.value("uniqueItems", false)) demands->unique = &schema;
    if (!schema.contains("contains")) return;
    ContainsDemand contains{.goal = {{&schema["contains"], false}}, .schema = &schema};
    if (!schema.contains("minContains")) contains.count.AtLeast(1);
    AffirmCount(schema, "minContains", "maxContains", &contains.count);
    if (!contains.count.free()) demands->contains.push_back(std::move(contains));
  }

  SchemaDocument* document_;
  std::vector<Demands> ways_;
};

}  // namespace

Goal NormalGoal(Goal goal, SchemaDocument* document) {
  Goal normal;
  std::set<Conjunct> seen;
  std::reverse(goal.begin(), goal.end());
  for (std::size_t steps = 0; !goal.empty(); ++steps) {
    document->Spend(kSchemaStep);
    Conjunct next = goal.back();
    goal.pop_back();
    next.schema = &document->Dereference(*next.schema);
    const Json& schema = *next.schema;
    if (schema.is_object() && !next.negated && HasOnly(schema, "allOf") &&
        schema["allOf"].is_array() && steps < 1000) {
      for (std::size_t i = schema["allOf"].size(); i-- > 0;) {
        goal.push_back({&schema["allOf"][i], false});
      }
    } else if ((next.negated || !IsTrueSchema(schema)) && seen.insert(next).second) {
      normal.push_back(next);
    }
  }
  return normal;
}

std::vector<Demands> WaysTo(const Goal& goal, SchemaDocument* document) {
  return WayFinder(document).Find(goal);
}

}  // namespace foretoken
