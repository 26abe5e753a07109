#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace foretoken {

/// A JSON value whose objects keep the order of their members.
using OrderedJson = nlohmann::ordered_json;

/// What OrderedJson::parse makes of a text, a discarded value where it is no JSON, in a
/// time that grows as the text does. That one looks at all earlier members of an object for each:
/// minutes for a megabyte of short names.
OrderedJson ParseOrdered(std::string_view text);

}  // namespace foretoken
