#include "tokenizer/chat_template.h"

#include "base/text.h"

namespace foretoken {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The literal between `before` and `after` that holds no quote or brace (so no expression).
std::optional<std::string> LiteralBetween(std::string_view text, std::string_view before,
                                          std::string_view after) {
  for (std::size_t at = text.find(before); at != std::string_view::npos;
       at = text.find(before, at + 1)) {
    const std::string_view rest = text.substr(at + before.size());
    const std::size_t end = rest.find(after);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view literal = rest.substr(0, end);
    if (literal.find_first_of("'\"{}") == std::string_view::npos) return std::string(literal);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::Recognise(std::string_view jinja,
                                                    const AddedTokens& tokens) {
  ChatTemplate chat;
  // Jinja string literals write a line feed as \n; templates read from JSON may hold either form.
  const std::string text = ReplaceAll(jinja, "\\n", "\n");
  chat.trims_ = Contains(text, "| trim") || Contains(text, "|trim");
  if (Contains(text, "<|im_start|>") && Contains(text, "<|im_end|>")) {
    chat.open_ = tokens.FindSpecial("<|im_start|>");
    chat.close_ = tokens.FindSpecial("<|im_end|>");
    chat.default_system_ = LiteralBetween(text, "<|im_start|>system\n", "<|im_end|>");
    if (!chat.default_system_.has_value()) {
      chat.default_system_ = LiteralBetween(text, "set system_message = '", "'");
    }
  } else if (Contains(text, "<|start_header_id|>") && Contains(text, "<|eot_id|>")) {
    chat.open_ = tokens.FindSpecial("<|start_header_id|>");
    chat.header_end_ = tokens.FindSpecial("<|end_header_id|>");
    chat.close_ = tokens.FindSpecial("<|eot_id|>");
    if (chat.header_end_ == nullptr) return std::nullopt;
    // Llama 3.1 and later open every chat so. The date is the template's own constant: today's
    // would make the same chat give other tokens tomorrow.
    if (Contains(text, "Cutting Knowledge Date: December 2023")) {
      chat.system_preamble_ = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
      chat.default_system_ = "";
    }
  }
  if (chat.open_ == nullptr || chat.close_ == nullptr) return std::nullopt;
  return chat;
}

std::optional<std::string> ChatTemplate::SystemText(std::span<const ChatMessage> messages) const {
  if (!messages.empty() && messages[0].role == "system") {
    const std::string_view content = messages[0].content;
    return system_preamble_ + std::string(trims_ ? Trim(content) : content);
  }
  if (!default_system_.has_value()) return std::nullopt;
  return system_preamble_ + *default_system_;
}

void ChatTemplate::Open(const std::string& role, std::vector<ChatPart>* parts) const {
  parts->back().mark = open_;
  parts->push_back({role, header_end_});
  if (header_end_ != nullptr) parts->push_back({"\n"});
  parts->back().text += "\n";
}

void ChatTemplate::Turn(const std::string& role, std::string_view content,
                        std::vector<ChatPart>* parts) const {
  Open(role, parts);
  parts->back().text += content;
  parts->back().mark = close_;
  parts->push_back({header_end_ == nullptr ? "\n" : ""});
}

std::vector<ChatPart> ChatTemplate::Render(std::span<const ChatMessage> messages) const {
  std::vector<ChatPart> parts(1);
  if (const auto system = SystemText(messages)) {
    Turn("system", *system, &parts);
    if (!messages.empty() && messages[0].role == "system") messages = messages.subspan(1);
  }
  for (const ChatMessage& message : messages) {
    const std::string_view content = message.content;
    Turn(message.role, trims_ ? Trim(content) : content, &parts);
  }
  Open("assistant", &parts);
  return parts;
}

}  // namespace foretoken
