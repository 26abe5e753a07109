#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "foretoken/chat.h"
#include "text/jinja/template.h"
#include "text/tokenizer/template/tools_place.h"

namespace foretoken {

/// A model's chat template: a Jinja program that writes a chat as text. Immutable and thread-safe.
class ChatTemplate {
 public:
  /// `marks` are the template's variables for special tokens: bos_token, eos_token ...
  static Result<ChatTemplate> Parse(std::string_view jinja,
                                    std::map<std::string, std::string> marks);

  /// The chat, ending with the opening of the assistant's turn, or with what that has said where
  /// the answer goes on with it. What messages, tools, documents and variables say is marked as
  /// input. Tools stand where the template looks for them, which may be the system message. An
  /// error where the template refuses the chat, or fails.
  Result<jinja::Text> Render(const ChatInput& chat) const;

 private:
  ChatTemplate(jinja::Template parsed, std::map<std::string, std::string> marks)
      : template_(std::move(parsed)),
        marks_(std::move(marks)),
        tools_place_(FindToolsPlace(template_, marks_)) {}

  jinja::Template template_;
  std::map<std::string, std::string> marks_;
  ToolsPlace tools_place_;
};

}  // namespace foretoken
