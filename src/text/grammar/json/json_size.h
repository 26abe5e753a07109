#pragma once

#include <string_view>

#include "base/result.h"

namespace foretoken {

/// Refuses a JSON text with more brackets open at once than `depth` or an object of more than
/// `members` members: parsed into Json, it would take long, since members that
/// are kept in order are searched from front to back. A text that is no JSON passes.
Status CheckJsonSize(std::string_view text, int depth, int members);

}  // namespace foretoken
