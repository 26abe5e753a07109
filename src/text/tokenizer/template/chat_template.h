#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "foretoken/chat.h"
#include "json/json.h"
#include "text/jinja/template.h"

namespace foretoken {

/// Where a chat template looks for the functions that a model may call.
enum class ToolsPlace {
  kVariable,       ///< Its variable `tools`, a list.
  kSystemMessage,  ///< `tools` of the system message, the same list (GLM 4).
  /// `tools` of the system message, a text with what the functions are, as JSON (Phi-4 mini).
  kSystemText,
};

/// The first place of these that the template shows: told by rendering chats with a function.
/// `marks` are the template's variables for special tokens.
ToolsPlace FindToolsPlace(const jinja::Template& chat_template,
                          const std::map<std::string, std::string>& marks);

/// Puts the `tools` of a template's variables, where there are any, where it looks for them: there
/// is then a system message. One that has `tools` of its own keeps them.
Status PutTools(ToolsPlace place, Json* variables);

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
