#include "grammar/json/schema_document.h"

#include <fmt/core.h>

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxWork = 2'000'000;

}  // namespace

void RefuseSchema(const std::string& path, const std::string& what) {
  throw SchemaRefusal{fmt::format("schema, at {}: {}", path.empty() ? "its root" : path, what)};
}

void SchemaDocument::Spend(std::size_t work) {
  work_ += work;
  if (work_ > kMaxWork) RefuseSchema("", "it is too large or too intricate; make it smaller");
}

const Json& SchemaDocument::Resolve(const Json& reference, const std::string& path) const {
  const std::string text = reference.is_string() ? reference.get<std::string>() : "";
  if (text != "#" && !text.starts_with("#/")) {
    RefuseSchema(path, "'$ref' must name a place in this schema, like #/$defs/name");
  }
  try {
    const Json::json_pointer pointer(text.substr(1));
    if (root_.contains(pointer)) return root_.at(pointer);
  } catch (const Json::exception&) {
    // Said below.
  }
  RefuseSchema(path, fmt::format("'$ref' names '{}', which is not there", text));
}

const Json& SchemaDocument::Dereference(const Json& schema, const std::string& path) const {
  const Json* at = &schema;
  for (int i = 0; i < kMaxSchemaDepth && at->is_object() && at->contains("$ref"); ++i) {
    at = &Resolve((*at)["$ref"], path);
  }
  return *at;
}

}  // namespace foretoken
