#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

struct NamedFilter {
  std::string_view name;
  FilterBody body;
};

/// The filter of a name; null where there is none.
FilterBody FindFilter(std::string_view name);

/// A function that every template has: range, dict, namespace, raise_exception, and strftime_now
/// where the workspace knows the time. Null where there is none of that name.
const Function* FindFunction(const Workspace& workspace, std::string_view name);

/// A method by its name.
struct NamedMethod {
  std::string_view name;
  MethodBody body;  ///< Null: Python has it, but not we.
};

/// The method of a value's type; null where it has none of that name.
const NamedMethod* FindMethod(const Value& value, std::string_view name);

/// What `value.name` is in Python where it is no item: a method, or what loops and namespaces have.
std::optional<Value> FindAttribute(Workspace* workspace, const Value& value, std::string_view name);

/// What stands behind `is`: the test of a name; null where there is none.
TestBody FindTest(std::string_view name);

// What each file of built-in things adds to what templates find by name.

std::span<const NamedMethod> TextMethods();
/// Methods of text too: letter case, kinds of letters.
std::span<const NamedMethod> LetterMethods();
std::span<const NamedMethod> ListMethods();
std::span<const NamedMethod> DictMethods();
std::span<const NamedMethod> LoopMethods();

std::span<const NamedFilter> TextFilters();
std::span<const NamedFilter> ListFilters();
std::span<const NamedFilter> SelectionFilters();
std::span<const NamedFilter> OrderFilters();
std::span<const NamedFilter> NumberFilters();

}  // namespace foretoken::jinja
