#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "text/grammar/json/schema_document.h"
#include "text/grammar/json/schema_keywords.h"

namespace foretoken {

/// A schema that a value must match, or must not.
struct Conjunct {
  const Json* schema = nullptr;
  bool negated = false;
  friend auto operator<=>(const Conjunct&, const Conjunct&) = default;
};

/// Schemas that a value must match (or not) at once; none: any value will do.
using Goal = std::vector<Conjunct>;

/// One keyword of a schema that must hold, or must not.
struct KeywordDemand {
  const Json* schema = nullptr;
  const char* keyword = nullptr;
  bool negated = false;
};

/// How many there must be at least, and at most (-1: any number).
struct CountDemand {
  int min = 0;
  int max = -1;

  void AtLeast(int count) { min = std::max(min, count); }
  void AtMost(int count) { max = max < 0 ? count : std::min(max, count); }
  bool free() const { return min == 0 && max < 0; }
};

struct ContainsDemand {
  Goal goal;  ///< The goal of the items that count.
  CountDemand count;
  const Json* schema = nullptr;
};

/// What a value must be, all of it at once: demands on one type hold for values of that type.
struct Demands {
  ValueTypes types = kAllTypes;
  /// If given, the value is one of these. They are no objects and no arrays, nor are those after.
  std::optional<std::vector<Json>> values;
  std::vector<Json> excluded;  ///< And none of these.

  std::vector<KeywordDemand> strings;  ///< "pattern" and "format".
  CountDemand length;
  std::vector<KeywordDemand> numbers;  ///< Bounds and "multipleOf".

  std::vector<const Json*> objects;  ///< Their schemas by name hold.
  std::vector<const Json*> names;    ///< Schemas of the members' names.
  std::vector<std::string> required;
  std::vector<std::string> absent;
  std::map<std::string, Goal> members;  ///< What else is demanded of some, if they are there.
  CountDemand properties;

  std::vector<const Json*> arrays;  ///< Their schemas by position hold.
  std::map<int, Goal> positions;    ///< What else is demanded of some items, if they are there.
  CountDemand items;
  std::vector<ContainsDemand> contains;
  const Json* unique = nullptr;  ///< The schema that wants no two items alike.
};

/// A goal in a form that equals that of other goals which ask for the same in the same words.
Goal NormalGoal(Goal goal, SchemaDocument* document);

/// The ways to reach a goal: a value reaches it if it meets all demands of at least one.
std::vector<Demands> WaysTo(const Goal& goal, SchemaDocument* document);

}  // namespace foretoken
