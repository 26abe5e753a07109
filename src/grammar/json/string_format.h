#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foretoken {

/// A regular expression (ParsePattern) for the strings of a "format"; an empty one for those that
/// do not say which texts match, like "password"; nothing for formats that are not known.
std::optional<std::string> FormatPattern(std::string_view format);

}  // namespace foretoken
