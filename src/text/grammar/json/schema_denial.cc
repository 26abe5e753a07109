#include <fmt/core.h>

#include <algorithm>

#include "text/grammar/grammar.h"
#include "text/grammar/json/schema_draft.h"

namespace foretoken {
namespace {

// Lists the ways in which a schema may not hold: one of its keywords does not.
class Denial {
 public:
  explicit Denial(SchemaDocument* document) : document_(document) {}

  std::vector<Alternative> Deny(const Json& schema) {
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
    return fork;
  }

 private:
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
    fork->emplace_back([listed = ReadListed(schema, keyword, document_)](Draft* to) {
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
    struct CountKeywords {
      const char* min;
      const char* max;
      CountDemand Demands::*demand;
      ValueTypes type;
    };
    static constexpr CountKeywords kCountKeywords[] = {
        {"minLength", "maxLength", &Demands::length, kStringType},
        {"minItems", "maxItems", &Demands::items, kArrayType},
        {"minProperties", "maxProperties", &Demands::properties, kObjectType}};
    for (const CountKeywords& kind : kCountKeywords) {
      if (keyword == kind.min) {
        const int count = SchemaCount(schema, kind.min, *document_);
        fork->emplace_back([kind, count](Draft* to) {
          to->Only(count == 0 ? 0 : kind.type);
          (to->demands.*kind.demand).AtMost(std::min(count, kMaxRepetitions) - 1);
        });
      } else if (keyword == kind.max) {
        const int count =
            LeastCount(SchemaCount(schema, kind.max, *document_) + 1, schema, *document_);
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
        to->With(name);
        to->demands.members[name].push_back({&member, true});
      });
    };
    if (keyword == "properties") {
      for (const auto& [name, member] : value.items()) deny_member(name, member);
    } else if (keyword == "required") {
      for (const Json& name : value) {
        fork->emplace_back([name = name.get<std::string>()](Draft* to) { to->Without(name); });
      }
    } else if (keyword == "additionalProperties" && value == false && !HasPatterns(schema)) {
      DenyClosed(schema, fork);
    } else if (keyword == "dependentRequired" || keyword == "dependentSchemas" ||
               keyword == "dependencies") {
      for (const auto& [name, wanted] : value.items()) {
        if (!wanted.is_array()) {
          fork->emplace_back([name = name, &wanted = wanted](Draft* to) {
            to->With(name);
            to->Add(wanted, true);
          });
          continue;
        }
        for (const Json& other : wanted) {
          fork->emplace_back([name = name, other = other.get<std::string>()](Draft* to) {
            to->With(name);
            to->Without(other);
          });
        }
      }
    } else if ((keyword == "patternProperties" && !value.empty()) || keyword == "propertyNames" ||
               (keyword == "additionalProperties" && !IsTrueSchema(value))) {
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
          with ? to->With(names[i]) : to->Without(names[i]);
          count += with ? 1 : 0;
        }
        to->demands.properties.AtLeast(count);
      });
    }
  }

  void DenyArray(std::string_view keyword, const Json& value, const Json& schema,
                 std::vector<Alternative>* fork) {
    const int prefix = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
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
    } else if (keyword == "items" && !IsTrueSchema(value)) {
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
    const int min =
        schema.contains("minContains") ? SchemaCount(schema, "minContains", *document_) : 1;
    const auto add = [&](CountDemand count) {
      fork->emplace_back([&value, &schema, count](Draft* to) {
        to->Only(kArrayType);
        to->demands.contains.push_back(
            {.goal = {{&value, false}}, .count = count, .schema = &schema});
      });
    };
    if (min > 0) add({.max = std::min(min, kMaxRepetitions) - 1});
    if (schema.contains("maxContains")) {
      add({.min =
               LeastCount(SchemaCount(schema, "maxContains", *document_) + 1, schema, *document_)});
    }
  }

  [[noreturn]] void RefuseDenied(std::string_view keyword, const Json& schema) const {
    document_->Refuse(schema, fmt::format("'{}' is not supported where it must not hold, as in "
                                          "'not', in 'if', or in a 'oneOf' whose schemas overlap",
                                          keyword));
  }

  SchemaDocument* document_;
};

}  // namespace

void Deny(const Json& schema, Draft* draft, SchemaDocument* document) {
  draft->forks.push_back(Denial(document).Deny(schema));
}

}  // namespace foretoken
