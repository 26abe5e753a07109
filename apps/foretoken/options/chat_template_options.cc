#include <fmt/format.h>

#include "json/json.h"

#include "apps/foretoken/options/options.h"
#include "base/files/read_text.h"
#include "foretoken/chat.h"

namespace foretoken {

Result<std::string> ChatTemplateOptions::Read() const {
  if (!variables.empty() && !Json::Parse(variables).is_object()) {
    return Invalid(
        "--chat-template-kwargs takes a JSON object, as {{\"enable_thinking\": false}}, not '{}'",
        variables);
  }
  if (source.empty()) return std::string();
  if (const auto built_in = BuiltInChatTemplate(source)) return std::string(*built_in);
  Result<std::string> text = ReadText(source);
  if (text.ok()) {
    if (!text->empty()) return text;
    return Invalid("the chat template in '{}' is empty", source);
  }
  return Invalid(
      "'{}' is no file with a chat template that can be read, nor one of those built in: {}",
      source, fmt::join(BuiltInChatTemplates(), ", "));
}

void AddChatTemplateOptions(CLI::App* app, ChatTemplateOptions* options) {
  const OptionGroup add(app, "Chat");
  add("--chat-template", &options->source, "FILE|NAME",
      fmt::format("A Jinja template in place of the model's own: a file, or one that is built in "
                  "({})",
                  fmt::join(BuiltInChatTemplates(), ", ")));
  add("--chat-template-kwargs", &options->variables, "JSON",
      "What the chat template is told besides the chat, as {\"enable_thinking\": false}");
}

void AddReasoningOptions(CLI::App* app, ReasoningBudget* budget) {
  const OptionGroup add(app, "Chat");
  add("--reasoning-budget", &budget->tokens, "N",
      "Tokens that the model may think before it answers; then its thoughts end. 0: none; -1: as "
      "many as it likes (default)")
      ->check(Between(-1, ReasoningBudget::kMaxTokens));
  add("--reasoning-budget-message", &budget->message, "TEXT",
      "What is written in the model's name before the end of thoughts whose budget is spent");
}

}  // namespace foretoken
