#pragma once

#include <string>
#include <string_view>

namespace foretoken {

/// A regular expression (ParsePattern) for the strings of a "format", those of JSON Schema and of
/// pydantic; an empty one for those that do not say which texts match, like "password", and those
/// that are not known: these are notes, as JSON Schema has it.
std::string FormatPattern(std::string_view format);

}  // namespace foretoken
