#include "text/grammar/json/schema_combination.h"

#include <algorithm>
#include <vector>

#include "text/grammar/json/schema_keywords.h"

namespace foretoken {
namespace {

bool ShareValue(const std::vector<Json>& a, const std::vector<Json>& b, SchemaDocument* document) {
  document->Spend(a.size() * b.size());
  return std::ranges::any_of(
      a, [&](const Json& value) { return std::ranges::find(b, value) != b.end(); });
}

bool Requires(const Json& schema, const std::string& name, SchemaDocument* document) {
  const auto required = schema.find("required");
  if (required == schema.end() || !required->is_array()) return false;
  document->Spend(kSchemaStep + required->size());
  return std::find(required->begin(), required->end(), name) != required->end();
}

bool ToldApart(const Json& a, const Json& b, SchemaDocument* document) {
  const auto named = a.find("properties");
  const auto others = b.find("properties");
  if (named == a.end() || others == b.end() || !named->is_object()) return false;
  for (const auto& [name, property] : named->items()) {
    const auto other = others->find(name);
    if (other == others->end() || !Requires(a, name, document) || !Requires(b, name, document)) {
      continue;
    }
    const auto a_values = ListedValues(document->Dereference(property));
    const auto b_values = ListedValues(document->Dereference(*other));
    if (a_values && b_values && !ShareValue(*a_values, *b_values, document)) return true;
  }
  return false;
}

}  // namespace

bool Disjoint(const Json& left, const Json& right, SchemaDocument* document) {
  const Json& a = document->Dereference(left);
  const Json& b = document->Dereference(right);
  if (!a.is_object() || !b.is_object()) return false;
  const auto a_values = ListedValues(a);
  const auto b_values = ListedValues(b);
  document->Spend(kSchemaStep + (a_values ? a_values->size() : 0) +
                  (b_values ? b_values->size() : 0));
  if (a_values.has_value() && b_values.has_value()) {
    return !ShareValue(*a_values, *b_values, document);
  }
  const ValueTypes shared = TypesOf(a, *document) & TypesOf(b, *document);
  if (a_values.has_value() || b_values.has_value()) {
    return std::ranges::none_of(a_values ? *a_values : *b_values,
                                [&](const Json& value) { return (TypeOf(value) & shared) != 0; });
  }
  return shared == 0 || (shared == kObjectType && ToldApart(a, b, document));
}

}  // namespace foretoken
