#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/foretoken/common/prompts.h"
#include "door/api/study.h"

namespace foretoken {

/// "A" or "A,H": acceptance, and the chance of a hit.
Result<Script> ParseScript(std::string_view text);

/// A prompt, and what the target is to say behind it.
struct PromptAnswer {
  std::vector<Token> prompt;
  std::string text;
};

/// The answers of the sets. An error where there is none.
Result<std::vector<PromptAnswer>> AnswersOf(std::span<const EncodedSet> sets);

/// Behind their prompts these answers are said. Borrows them.
AnswerText SayingThese(std::span<const PromptAnswer> answers);

}  // namespace foretoken
