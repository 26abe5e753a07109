#include "text/grammar/json/schema_draft.h"

#include <fmt/core.h>

#include <algorithm>

#include "text/grammar/grammar.h"

namespace foretoken {
namespace {

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

}  // namespace

void Draft::With(const std::string& name) {
  Only(kObjectType);
  Require(name);
}

void Draft::Without(const std::string& name) {
  Only(kObjectType);
  AddNew(&demands.absent, name);
}

void Draft::Require(const std::string& name) { AddNew(&demands.required, name); }

ListedParts ReadListed(const Json& schema, std::string_view keyword, SchemaDocument* document) {
  ListedParts listed;
  const auto add = [&](const Json& value) {
    document->Spend(kSchemaStep + value.size());
    if (value.is_structured()) {
      listed.schemas.push_back(&document->Reworded(value, [&] { return SchemaOfValue(value); }));
    } else {
      listed.scalars.push_back(value);
    }
  };
  if (keyword == "const") {
    add(schema[keyword]);
  } else {
    for (const Json& value : schema[keyword]) add(value);
  }
  return listed;
}

bool IsTrueSchema(const Json& schema) {
  return schema == true || (schema.is_object() && schema.empty());
}

int LeastCount(int count, const Json& schema, const SchemaDocument& document) {
  if (count > kMaxRepetitions) {
    document.Refuse(schema, fmt::format("it asks for more than {} characters, items or properties",
                                        kMaxRepetitions));
  }
  return count;
}

}  // namespace foretoken
