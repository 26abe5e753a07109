#include "apps/lab/bench/script_option.h"

#include <algorithm>
#include <optional>

#include "apps/foretoken/options/options.h"
#include "base/text/parse_number.h"

namespace foretoken {
Result<Script> ParseScript(std::string_view text) {
  const std::vector<std::string> parts = SplitList(text);
  Script script;
  const auto probability = [](const std::string& part, double* value) {
    return ParseNumber(part, value) && *value >= 0 && *value <= 1;
  };
  if (parts.empty() || parts.size() > 2 || !probability(parts[0], &script.acceptance) ||
      (parts.size() == 2 && !probability(parts[1], &script.hit))) {
    return Invalid("--scripted-acceptance '{}' is not of the form A or A,H with both from 0 to 1",
                   text);
  }
  return script;
}

Result<std::vector<PromptAnswer>> AnswersOf(std::span<const EncodedSet> sets) {
  std::vector<PromptAnswer> answers;
  for (const EncodedSet& set : sets) {
    for (std::size_t i = 0; i < set.prompts.size(); ++i) {
      if (!set.answers[i].empty()) answers.push_back({set.prompts[i], set.answers[i]});
    }
  }
  if (answers.empty()) {
    return InvalidInput(
        "--scripted-answers: no line of --prompts has an 'answer' that the target could say");
  }
  return answers;
}

AnswerText SayingThese(std::span<const PromptAnswer> answers) {
  if (answers.empty()) return nullptr;
  return [answers](std::span<const Token> prompt) -> std::optional<std::string> {
    const auto found = std::ranges::find_if(
        answers, [&](const PromptAnswer& each) { return std::ranges::equal(each.prompt, prompt); });
    if (found == answers.end()) return std::nullopt;
    return found->text;
  };
}

}  // namespace foretoken
