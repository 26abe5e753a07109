#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"

namespace foretoken {

/// One turn of a chat.
struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
  /// What else the template may read of the turn, a JSON object: {"tool_calls": [...]}. Empty:
  /// nothing.
  std::string more = {};
};

/// A chat and what its template is told besides.
struct ChatInput {
  std::vector<ChatMessage> messages;
  /// The answer goes on with the last message, an assistant's, in place of beginning a turn.
  bool continues_last = false;
  /// Functions that the model may call, a JSON array; empty: none.
  std::string tools = {};
  /// Texts that the model may cite, a JSON array; empty: none.
  std::string documents = {};
  /// Further variables of the template, a JSON object: {"enable_thinking": false}. Empty: none.
  std::string variables = {};
  /// What the template's clock says, strftime_now(); nothing: it has none.
  std::optional<std::tm> now = {};
};

/// The Jinja template that is built in under this name ("chatml"); nothing where there is none.
std::optional<std::string_view> BuiltInChatTemplate(std::string_view name);
/// Their names, in order.
std::vector<std::string_view> BuiltInChatTemplates();

/// The present time, as clocks here show it.
std::tm LocalTime();

}  // namespace foretoken
