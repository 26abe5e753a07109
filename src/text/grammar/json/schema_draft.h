#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "text/grammar/json/schema_demands.h"
#include "text/grammar/json/schema_document.h"

namespace foretoken {

// A way to a goal while it is made (schema_demands.cc).

struct Draft;

/// What is added to a draft to follow one of several ways.
using Alternative = std::function<void(Draft*)>;

/// Demands so far, and what is still to become demands.
struct Draft {
  void Add(const Json& schema, bool negated) { todo.push_back({&schema, negated}); }
  void Only(ValueTypes types) { demands.types &= types; }
  /// The value is an object that has, or lacks, a member.
  void With(const std::string& name);
  void Without(const std::string& name);
  void Require(const std::string& name);

  Demands demands;
  Goal todo;                                    ///< Taken from the end.
  std::vector<std::vector<Alternative>> forks;  ///< One alternative of each is to be taken.
  std::set<Conjunct> seen;                      ///< All that was ever to do.
};

/// What "const" or "enum" lists; objects and lists as schemas that only they match.
struct ListedParts {
  std::vector<Json> scalars;
  std::vector<const Json*> schemas;
};
ListedParts ReadListed(const Json& schema, std::string_view keyword, SchemaDocument* document);

/// Whether a schema says of itself that everything matches it.
bool IsTrueSchema(const Json& schema);

/// Refuses a least number that is more than can be counted.
int LeastCount(int count, const Json& schema, const SchemaDocument& document);

/// Adds that `schema`, an object, does not hold: that one of its keywords does not.
void Deny(const Json& schema, Draft* draft, SchemaDocument* document);

}  // namespace foretoken
