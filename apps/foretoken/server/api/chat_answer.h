#pragma once

#include <span>
#include <string>
#include <vector>

#include "foretoken/chat_format.h"

namespace foretoken::server {

/// An answer put together of its parts.
struct ChatAnswer {
  struct Call {
    std::string name;
    std::string arguments;  ///< A JSON text.
  };
  std::string content;
  std::string reasoning;
  std::vector<Call> calls;

  void Add(std::span<const ChatPart> parts);
  /// Adds an answer's parts behind these.
  void Join(ChatAnswer more);
  bool empty() const { return content.empty() && reasoning.empty() && calls.empty(); }
};

}  // namespace foretoken::server
