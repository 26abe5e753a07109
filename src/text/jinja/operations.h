#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

// What Python's operators do. Errors are left in the workspace.

enum class Operator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison { kEqual, kUnequal, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

bool Truth(const Value& value);
bool Equal(Workspace* workspace, const Value& left, const Value& right);
/// Whether `left` comes first; an error where the types have no order.
bool Less(Workspace* workspace, const Value& left, const Value& right);
bool Contains(Workspace* workspace, const Value& container, const Value& item);
bool Compare(Workspace* workspace, Comparison comparison, const Value& left, const Value& right);

Value Calculate(Workspace* workspace, Operator operation, const Value& left, const Value& right);
Value Negate(Workspace* workspace, const Value& value);

/// How many items, entries or characters a value has; nothing where it has no length.
std::optional<std::int64_t> Length(const Value& value);
/// What a loop over the value goes through: items, keys, characters. A generator is empty
/// afterwards. False where that is an error.
bool Iterate(Workspace* workspace, const Value& value, std::vector<Value>* items);
/// The same as a new list of that kind.
List* ListOf(Workspace* workspace, const Value& value, List::Kind kind = List::Kind::kList);

/// `object[key]`; undefined where there is none.
Value GetItem(Workspace* workspace, const Value& object, const Value& key);
/// `object.name`: a method or what loops and namespaces have; else as GetItem.
Value GetAttribute(Workspace* workspace, const Value& object, const std::string* name);
/// What `attribute` of filters leads to: "a.b.0", or a number.
Value GetPath(Workspace* workspace, const Value& object, const Value& path);
/// `object[start:stop:step]`; what is none is left out.
Value GetSlice(Workspace* workspace, const Value& object, const Value& start, const Value& stop,
               const Value& step);

}  // namespace foretoken::jinja
