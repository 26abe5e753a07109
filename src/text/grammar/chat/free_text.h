#pragma once

#include <string_view>

#include "text/grammar/grammar.h"

namespace foretoken {

// Texts of any characters, up to a mark. Each adds rules to `grammar` and gives the first.

/// Texts that end with `mark` and have it nowhere else.
Expression TextUpTo(std::string_view mark, Grammar* grammar);
/// Texts without `mark`, the empty one too, that begin with none of the ASCII characters
/// `not_first`.
Expression TextWithout(std::string_view mark, std::string_view not_first, Grammar* grammar);

}  // namespace foretoken
