#pragma once

#include <string>

#include "text/jinja/workspace.h"

namespace foretoken::jinja {

/// Python's repr() of a float: the shortest digits that read back as the same number.
std::string FloatText(double number);

/// Appends Python's str() of a value: text as it is, the rest as repr() has it.
bool AppendStr(const Value& value, TextBuilder* builder);
/// Appends Python's repr(), in which text has quotes.
bool AppendRepr(const Value& value, TextBuilder* builder);

/// str() as a string; what is one stays as it is.
Value Str(Workspace* workspace, const Value& value);

}  // namespace foretoken::jinja
