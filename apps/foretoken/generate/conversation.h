#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "foretoken/tokenizer.h"

namespace foretoken {

/// What was said in a chat.
struct Conversation {
  std::string system;                 ///< Empty: none.
  std::vector<ChatMessage> messages;  ///< Turns of the user and replies, by turns.

  /// All of them, the system message first: what a model reads.
  std::vector<ChatMessage> WithSystem() const;
  /// Takes the last reply and the turn before it away, and returns the turn; empty where there is
  /// no reply.
  std::string TakeLastTurn();
};

/// As JSON in the form of a request to a chat API: {"messages": [{"role", "content"} ...]}.
std::string FormatConversation(const Conversation& conversation);
/// `where` names the text in errors.
Result<Conversation> ParseConversation(std::string_view text, std::string_view where);

}  // namespace foretoken
