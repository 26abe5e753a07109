#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

/// A method by its name.
struct NamedMethod {
  std::string_view name;
  MethodBody body;  ///< Null: Python has it, but not we.
};

/// The method of a value's type; null where it has none of that name.
const NamedMethod* FindMethod(const Value& value, std::string_view name);

/// What `value.name` is in Python where it is no item: a method, or what loops and namespaces have.
std::optional<Value> FindAttribute(Workspace* workspace, const Value& value, std::string_view name);

}  // namespace foretoken::jinja
