#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/grammar/grammar.h"

namespace foretoken {

/// The characters, ascending and disjoint, that `\p{name}` stands for in a regular expression of
/// ECMA-262 with flag u: a general category (`Lu`, `Letter`, `gc=Lu`), a script (`Script=Greek`,
/// `scx=Grek`) or a property that a character has or has not (`Alphabetic`, `Emoji`). Names are
/// exact, as the standard lists them. Nothing for other names.
std::optional<std::vector<CodeRange>> UnicodeProperty(std::string_view name);

}  // namespace foretoken
