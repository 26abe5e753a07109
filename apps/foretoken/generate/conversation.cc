#include "apps/foretoken/generate/conversation.h"

#include <fmt/core.h>

#include "json/json.h"

namespace foretoken {

std::vector<ChatMessage> Conversation::WithSystem() const {
  std::vector<ChatMessage> all;
  if (!system.empty()) all.push_back({"system", system});
  all.insert(all.end(), messages.begin(), messages.end());
  return all;
}

std::string Conversation::TakeLastTurn() {
  if (messages.size() < 2) return {};
  std::string turn = messages[messages.size() - 2].content;
  messages.resize(messages.size() - 2);
  return turn;
}

std::string FormatConversation(const Conversation& conversation) {
  Json messages = Json::array();
  for (const ChatMessage& message : conversation.WithSystem()) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  return Json{{"messages", messages}}.dump(2) + "\n";
}

Result<Conversation> ParseConversation(std::string_view text, std::string_view where) {
  const auto wrong = [where](std::string_view why) {
    return Invalid(
        "'{}' is no saved conversation: {}; one looks like "
        R"({{"messages": [{{"role": "user", "content": "Hi"}}, ...]}})",
        where, why);
  };
  const Json parsed = Json::Parse(text);
  if (!parsed.is_object() || !parsed.contains("messages") || !parsed["messages"].is_array()) {
    return wrong("it has no list of messages");
  }
  Conversation conversation;
  for (const Json& message : parsed["messages"]) {
    const auto text_of = [&message](const char* key) -> const std::string* {
      if (!message.is_object() || !message.contains(key)) return nullptr;
      return message[key].is_string() ? &message[key].text() : nullptr;
    };
    const std::string* role = text_of("role");
    const std::string* content = text_of("content");
    if (role == nullptr || content == nullptr) return wrong("a message lacks role or content");
    const bool first = conversation.messages.empty() && conversation.system.empty();
    if (*role == "system" && first) {
      conversation.system = *content;
      continue;
    }
    const bool users_turn = conversation.messages.size() % 2 == 0;
    if (*role != (users_turn ? "user" : "assistant")) {
      return wrong(fmt::format("message {} is of '{}', where '{}' should speak",
                               conversation.WithSystem().size() + 1, *role,
                               users_turn ? "user" : "assistant"));
    }
    conversation.messages.push_back({*role, *content});
  }
  if (conversation.messages.size() % 2 != 0) return wrong("the last turn has no reply");
  return conversation;
}

}  // namespace foretoken
