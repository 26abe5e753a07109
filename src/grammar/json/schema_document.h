#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace foretoken {

/// A schema that cannot be turned into a grammar. Thrown by the parts that read schemas;
/// JsonSchemaGrammar turns it into an error, so that none leaves this folder.
struct SchemaRefusal {
  std::string message;
};

/// Throws SchemaRefusal: what is wrong at `path`, a JSON pointer.
[[noreturn]] void RefuseSchema(const std::string& path, const std::string& what);

inline constexpr int kMaxSchemaDepth = 64;      ///< Schemas within schemas.
inline constexpr std::size_t kSchemaStep = 32;  ///< Work of a look at a schema, without its parts.

/// A whole schema, whose parts refer to each other, and the work that reading it has taken. Borrows
/// the schema.
class SchemaDocument {
 public:
  explicit SchemaDocument(const nlohmann::ordered_json& root) : root_(root) {}

  const nlohmann::ordered_json& root() const { return root_; }

  /// Refuses schemas of shapes that would take time that grows faster than they do. `work` is in
  /// bytes written, about, and what costs as much.
  void Spend(std::size_t work);

  /// What a "$ref" names.
  const nlohmann::ordered_json& Resolve(const nlohmann::ordered_json& reference,
                                        const std::string& path) const;
  /// The schema itself, or where its "$ref" leads in the end.
  const nlohmann::ordered_json& Dereference(const nlohmann::ordered_json& schema,
                                            const std::string& path) const;

 private:
  const nlohmann::ordered_json& root_;
  std::size_t work_ = 0;
};

}  // namespace foretoken
