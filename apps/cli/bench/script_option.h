#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "api/study.h"
#include "cli/common/prompts.h"

namespace foretoken {

/// "A" or "A,H": acceptance, and the chance of a hit.
Result<Script> ParseScript(std::string_view text);

/// The answers of the sets. An error where there is none.
Result<std::vector<AnswerText>> AnswersOf(std::span<const EncodedSet> sets);

}  // namespace foretoken
