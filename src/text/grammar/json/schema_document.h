#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "json/json.h"

namespace foretoken {

/// A schema that cannot be turned into a grammar. Thrown by the parts that read schemas;
/// JsonSchemaGrammar turns it into an error, so that none leaves this folder.
struct SchemaRefusal {
  std::string message;
};

inline constexpr std::size_t kSchemaStep = 32;  ///< Work of a look at a schema, without its parts.

/// A whole schema, whose parts refer to each other, and the work that reading it has taken. Parts
/// are known by their addresses. Borrows the schema.
class SchemaDocument {
 public:
  explicit SchemaDocument(const Json& root);

  const Json& root() const { return root_; }

  /// Throws SchemaRefusal: what is wrong with `part`, named by its place.
  [[noreturn]] void Refuse(const Json& part, const std::string& what) const;
  /// What `result` holds; where it is an error, refuses `part`, naming `what` as the error's
  /// subject.
  template <typename T>
  T Take(Result<T> result, const Json& part, const std::string& what) const {
    if (!result.ok()) Refuse(part, what + " " + result.error().message);
    return std::move(result).value();
  }

  /// Refuses schemas of shapes that would take time that grows faster than they do. `work` is in
  /// bytes written, about, and what costs as much.
  void Spend(std::size_t work);

  /// What the "$ref" of `schema` names.
  const Json& Resolve(const Json& schema) const;
  /// The schema itself, or where its "$ref" leads in the end, if that is all it has.
  const Json& Dereference(const Json& schema) const;

  /// A schema that says in other words what a `part` says: made once for each part by `make`, and
  /// kept.
  template <typename Make>
  const Json& Reworded(const Json& part, Make make) {
    const auto [known, added] = reworded_.try_emplace(&part, nullptr);
    if (added) {
      own_.push_back({make(), &part});
      known->second = &own_.back().schema;
    }
    return *known->second;
  }

 private:
  struct Own {
    Json schema;
    const Json* origin;
  };

  const Json& root_;
  const bool names_parts_;  // Parts have an "$id".
  std::deque<Own> own_;
  std::unordered_map<const Json*, const Json*> reworded_;
  std::size_t work_ = 0;
};

}  // namespace foretoken
