#include "apps/foretoken/server/api/chat_answer.h"

#include <algorithm>
#include <iterator>

namespace foretoken::server {

void ChatAnswer::Add(std::span<const ChatPart> parts) {
  for (const ChatPart& part : parts) {
    switch (part.kind) {
      case ChatPart::Kind::kContent:
        content += part.text;
        break;
      case ChatPart::Kind::kReasoning:
        reasoning += part.text;
        break;
      case ChatPart::Kind::kCall:
        calls.push_back({part.text, {}});
        break;
      case ChatPart::Kind::kArguments:
        calls.back().arguments += part.text;
        break;
    }
  }
}

void ChatAnswer::Join(ChatAnswer more) {
  content += more.content;
  reasoning += more.reasoning;
  std::ranges::move(more.calls, std::back_inserter(calls));
}

}  // namespace foretoken::server
