#include "grammar/json/schema_demands.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "grammar/grammar.h"
#include "grammar/json/schema_combination.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxWays = 512;

bool IsTrue(const Json& schema) {
  return schema == true || (schema.is_object() && schema.empty());
}

bool IsScalar(const Json& value) { return !value.is_structured(); }

bool Lists(const std::vector<Json>& values, const Json& value) {
  return std::ranges::find(values, value) != values.end();
}

void AddNew(std::vector<std::string>* names, const std::string& name) {
  if (std::ranges::find(*names, name) == names->end()) names->push_back(name);
}

// An object or a list that a value must equal, as a schema.
Json SchemaOfValue(const Json& value) {
  Json schema;
  if (value.is_object()) {
    schema = {{"type", "object"},
              {"properties", Json::object()},
              {"required", Json::array()},
              {"maxProperties", value.size()}};
    for (const auto& [name, member] : value.items()) {
      schema["properties"][name] = {{"const", member}};
      schema["required"].push_back(name);
    }
    return schema;
  }
  schema = {{"type", "array"},
            {"prefixItems", Json::array()},
            {"minItems", value.size()},
            {"maxItems", value.size()}};
  for (const Json& item : value) schema["prefixItems"].push_back({{"const", item}});
  return schema;
}

// A way that is being made: demands so far, and what is still to become demands.
struct Draft;
using Alternative = std::function<void(Draft*)>;

struct Draft {
  Demands demands;
  Goal todo;
  std::vector<std::vector<Alternative>> forks;
  std::set<Conjunct> seen;

  void Add(const Json& schema, bool negated) { todo.push_back({&schema, negated}); }
  void Only(ValueTypes types) { demands.types &= types; }
};

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
      const Json& schema = *next.schema;
      if (schema.is_boolean()) {
        if (schema.get<bool>() == next.negated) return;
        continue;
      }
      if (!schema.is_object()) document_->Refuse(schema, "a schema is an object, true or false");
      CheckKeywords(schema, *document_);
      next.negated ? Deny(schema, &draft) : Affirm(schema, &draft);
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

  int Count(const Json& schema, const char* keyword) {
    return SchemaCount(schema, keyword, *document_);
  }
  // What must be there at least.
  int Least(const Json& schema, int count) {
    if (count > kMaxRepetitions) {
      document_->Refuse(schema, fmt::format("it asks for more than {} characters, items or "
                                            "properties",
                                            kMaxRepetitions));
    }
    return count;
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
    if (schema.contains(min)) demand->AtLeast(Least(schema, Count(schema, min)));
    if (schema.contains(max)) demand->AtMost(std::min(Count(schema, max), kMaxRepetitions));
  }

  void AffirmValues(const Json& schema, Draft* draft) {
    for (const char* const keyword : {"const", "enum"}) {
      if (schema.contains(keyword)) AffirmOneOf(ReadValues(schema, keyword), draft);
    }
  }

  // What "const" or "enum" lists; objects and lists as schemas.
  struct Values {
    std::vector<Json> scalars;
    std::vector<const Json*> schemas;
  };

  Values ReadValues(const Json& schema, std::string_view keyword) {
    Values values;
    const auto add = [&](const Json& value) {
      document_->Spend(kSchemaStep + value.size());
      if (IsScalar(value)) {
        values.scalars.push_back(value);
      } else {
        values.schemas.push_back(
            &document_->Reworded(value, [&] { return SchemaOfValue(value); }));
      }
    };
    const Json& listed = schema[keyword];
    if (keyword == "const") {
      add(listed);
    } else {
      for (const Json& value : listed) add(value);
    }
    return values;
  }

  static void AffirmOneOf(const Values& listed, Draft* draft) {
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
      for (const Json& name : schema["required"]) AddNew(&demands.required, name);
    }
    AffirmCount(schema, "minProperties", "maxProperties", &demands.properties);
    for (const char* const keyword : {"dependentRequired", "dependentSchemas"}) {
      if (!schema.contains(keyword)) continue;
      for (const auto& [name, wanted] : schema[keyword].items()) {
        draft->forks.push_back(
            {[name = name](Draft* to) { Without(name, to); },
             [name = name, &wanted = wanted](Draft* to) {
               With(name, to);
               if (!wanted.is_array()) return to->Add(wanted, false);
               for (const Json& also : wanted) AddNew(&to->demands.required, also);
             },
             [](Draft* to) { to->Only(kAllTypes & ~kObjectType); }});
      }
    }
  }

  static void With(const std::string& name, Draft* draft) {
    draft->Only(kObjectType);
    AddNew(&draft->demands.required, name);
  }
  static void Without(const std::string& name, Draft* draft) {
    draft->Only(kObjectType);
    AddNew(&draft->demands.absent, name);
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

  // A schema does not hold where one of its keywords does not.
  void Deny(const Json& schema, Draft* draft) {
    std::vector<Alternative> fork;
    const ValueTypes types = TypesOf(schema, *document_);
    if (types != kAllTypes) {
      fork.emplace_back([types](Draft* to) { to->Only(kAllTypes & ~types); });
    }
    if (schema.contains("$ref")) {
      fork.emplace_back(
          [&target = document_->Resolve(schema)](Draft* to) { to->Add(target, true); });
    }
    for (const auto& [keyword, value] : schema.items()) {
      if (!IsAnnotation(keyword)) DenyKeyword(keyword, value, schema, &fork);
    }
    draft->forks.push_back(std::move(fork));
  }

  void DenyKeyword(std::string_view keyword, const Json& value, const Json& schema,
                   std::vector<Alternative>* fork) {
    static constexpr const char* kScalarKeywords[] = {
        "pattern",          "format",           "minimum",   "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
    for (const char* const known : kScalarKeywords) {
      if (keyword != known) continue;
      const bool text = value.is_string();
      fork->emplace_back([&schema, known, text](Draft* to) {
        to->Only(text ? kStringType : kNumberTypes);
        (text ? to->demands.strings : to->demands.numbers).push_back({&schema, known, true});
      });
    }
    if (keyword == "const" || keyword == "enum") DenyValues(keyword, schema, fork);
    DenyCombination(keyword, value, schema, fork);
    DenyCounts(keyword, schema, fork);
    DenyObject(keyword, value, schema, fork);
    DenyArray(keyword, value, schema, fork);
  }

  void DenyValues(std::string_view keyword, const Json& schema, std::vector<Alternative>* fork) {
    fork->emplace_back([listed = ReadValues(schema, keyword)](Draft* to) {
      auto& excluded = to->demands.excluded;
      excluded.insert(excluded.end(), listed.scalars.begin(), listed.scalars.end());
      for (const Json* whole : listed.schemas) to->Add(*whole, true);
    });
  }

  void DenyCombination(std::string_view keyword, const Json& value, const Json& schema,
                       std::vector<Alternative>* fork) {
    if (keyword == "allOf") {
      for (const Json& part : value) {
        fork->emplace_back([&part](Draft* to) { to->Add(part, true); });
      }
    } else if (keyword == "not") {
      fork->emplace_back([&value](Draft* to) { to->Add(value, false); });
    } else if (keyword == "anyOf" || keyword == "oneOf") {
      fork->emplace_back([&value](Draft* to) {
        for (const Json& part : value) to->Add(part, true);
      });
      if (keyword == "anyOf") return;
      for (std::size_t i = 0; i < value.size(); ++i) {  // Two at once.
        for (std::size_t j = 0; j < i; ++j) {
          document_->Spend(kSchemaStep);
          fork->emplace_back([&a = value[i], &b = value[j]](Draft* to) {
            to->Add(a, false);
            to->Add(b, false);
          });
        }
      }
    } else if (keyword == "if") {
      for (const bool negated : {false, true}) {
        const char* const branch = negated ? "else" : "then";
        if (!schema.contains(branch)) continue;
        fork->emplace_back([&value, negated, &then = schema[branch]](Draft* to) {
          to->Add(value, negated);
          to->Add(then, true);
        });
      }
    }
  }

  void DenyCounts(std::string_view keyword, const Json& schema, std::vector<Alternative>* fork) {
    struct Kind {
      const char* min;
      const char* max;
      CountDemand Demands::*demand;
      ValueTypes type;
    };
    static constexpr Kind kKinds[] = {
        {"minLength", "maxLength", &Demands::length, kStringType},
        {"minItems", "maxItems", &Demands::items, kArrayType},
        {"minProperties", "maxProperties", &Demands::properties, kObjectType}};
    for (const Kind& kind : kKinds) {
      if (keyword == kind.min) {
        const int count = Count(schema, kind.min);
        fork->emplace_back([kind, count](Draft* to) {
          to->Only(count == 0 ? 0 : kind.type);
          (to->demands.*kind.demand).AtMost(std::min(count, kMaxRepetitions) - 1);
        });
      } else if (keyword == kind.max) {
        const int count = Least(schema, Count(schema, kind.max) + 1);
        fork->emplace_back([kind, count](Draft* to) {
          to->Only(kind.type);
          (to->demands.*kind.demand).AtLeast(count);
        });
      }
    }
  }

  void DenyObject(std::string_view keyword, const Json& value, const Json& schema,
                  std::vector<Alternative>* fork) {
    const auto deny_member = [fork](const std::string& name, const Json& member) {
      fork->emplace_back([name, &member](Draft* to) {
        With(name, to);
        to->demands.members[name].push_back({&member, true});
      });
    };
    if (keyword == "properties") {
      for (const auto& [name, member] : value.items()) deny_member(name, member);
    } else if (keyword == "required") {
      for (const Json& name : value) {
        fork->emplace_back([name = name.get<std::string>()](Draft* to) { Without(name, to); });
      }
    } else if (keyword == "additionalProperties" && value == false && !HasPatterns(schema)) {
      DenyClosed(schema, fork);
    } else if (keyword == "dependentRequired" || keyword == "dependentSchemas") {
      for (const auto& [name, wanted] : value.items()) {
        if (!wanted.is_array()) {
          fork->emplace_back([name = name, &wanted = wanted](Draft* to) {
            With(name, to);
            to->Add(wanted, true);
          });
          continue;
        }
        for (const Json& other : wanted) {
          fork->emplace_back([name = name, other = other.get<std::string>()](Draft* to) {
            With(name, to);
            Without(other, to);
          });
        }
      }
    } else if ((keyword == "patternProperties" && !value.empty()) || keyword == "propertyNames" ||
               (keyword == "additionalProperties" && !IsTrue(value))) {
      RefuseDenied(keyword, schema);
    }
  }

  static bool HasPatterns(const Json& schema) {
    return schema.contains("patternProperties") && !schema["patternProperties"].empty();
  }

  // There is a member that "properties" does not name: with k of the names there, more than k are.
  void DenyClosed(const Json& schema, std::vector<Alternative>* fork) {
    std::vector<std::string> names;
    if (schema.contains("properties")) {
      for (const auto& [name, member] : schema["properties"].items()) names.push_back(name);
    }
    if (names.size() > 4) RefuseDenied("additionalProperties", schema);
    for (unsigned there = 0; there < (1U << names.size()); ++there) {
      fork->emplace_back([names, there](Draft* to) {
        to->Only(kObjectType);
        int count = 1;
        for (std::size_t i = 0; i < names.size(); ++i) {
          const bool with = ((there >> i) & 1U) != 0;
          with ? With(names[i], to) : Without(names[i], to);
          count += with ? 1 : 0;
        }
        to->demands.properties.AtLeast(count);
      });
    }
  }

  void DenyArray(std::string_view keyword, const Json& value, const Json& schema,
                 std::vector<Alternative>* fork) {
    const auto prefix = static_cast<int>(
        schema.contains("prefixItems") ? schema["prefixItems"].size() : 0);
    if (keyword == "prefixItems") {
      for (int i = 0; i < prefix; ++i) {
        fork->emplace_back([i, &item = value[i]](Draft* to) {
          to->Only(kArrayType);
          to->demands.items.AtLeast(i + 1);
          to->demands.positions[i].push_back({&item, true});
        });
      }
    } else if (keyword == "items" && value == false) {
      fork->emplace_back([prefix](Draft* to) {
        to->Only(kArrayType);
        to->demands.items.AtLeast(prefix + 1);
      });
    } else if (keyword == "items" && !IsTrue(value)) {
      if (prefix > 0) RefuseDenied("items", schema);
      fork->emplace_back([&value, &schema](Draft* to) {
        to->Only(kArrayType);
        to->demands.contains.push_back(
            {.goal = {{&value, true}}, .count = {.min = 1}, .schema = &schema});
      });
    } else if (keyword == "contains") {
      DenyContains(value, schema, fork);
    } else if (keyword == "uniqueItems" && value == true) {
      RefuseDenied("uniqueItems", schema);
    }
  }

  void DenyContains(const Json& value, const Json& schema, std::vector<Alternative>* fork) {
    const int min = schema.contains("minContains") ? Count(schema, "minContains") : 1;
    const auto add = [&](CountDemand count) {
      fork->emplace_back([&value, &schema, count](Draft* to) {
        to->Only(kArrayType);
        to->demands.contains.push_back(
            {.goal = {{&value, false}}, .count = count, .schema = &schema});
      });
    };
    if (min > 0) add({.max = std::min(min, kMaxRepetitions) - 1});
    if (schema.contains("maxContains")) {
      add({.min = Least(schema, Count(schema, "maxContains") + 1)});
    }
  }

  [[noreturn]] void RefuseDenied(std::string_view keyword, const Json& schema) const {
    document_->Refuse(
        schema, fmt::format("'{}' is not supported where it must not hold, as in 'not', in 'if', or "
                            "in a 'oneOf' whose schemas overlap",
                            keyword));
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
    } else if ((next.negated || !IsTrue(schema)) && seen.insert(next).second) {
      normal.push_back(next);
    }
  }
  return normal;
}

std::vector<Demands> WaysTo(const Goal& goal, SchemaDocument* document) {
  return WayFinder(document).Find(goal);
}

}  // namespace foretoken
