#pragma once

#include <string>
#include <string_view>

#include "server/api/api_json.h"
#include "server/api/api_request.h"
#include "server/api/field_reader.h"

namespace foretoken::server {

// Tools as OpenAI's chats have them, which chat templates have as well.

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`. `body` is the text that `fields` were
/// parsed from: the order of a schema's properties matters and parsed fields have lost it.
void ReadTools(std::string_view body, FieldReader* fields, ApiRequest* request);
/// The same as OpenAI's responses have it: a tool's and a choice's members are not in a `function`.
void ReadFlatTools(std::string_view body, FieldReader* fields, ApiRequest* request);
/// Checks a function that may be called and adds it.
void AddTool(ChatTool tool, FieldReader* fields, ApiRequest* request);
/// Keeps the function that the field `name` of `fields` names alone: it must be called.
void CallOnly(const std::string& name, FieldReader* fields, ApiRequest* request);

/// Reads what a message has besides role and content: the calls and thoughts of an assistant's,
/// which call a tool's answers.
void ReadToolsOfMessage(FieldReader* message, ChatMessage* turn);
/// A call as chat templates read it: arguments are a string in requests and, where that is JSON,
/// the object in templates.
OrderedJson TemplateCall(const std::string& id, const std::string& name,
                         const std::string& arguments);
/// Gives the answers of tools that come without a name that of the function which was called.
void NameToolAnswers(std::vector<ChatMessage>* messages);

/// The id of a choice's call: the same for the same three, nine characters as some templates want.
std::string CallId(std::string_view reply, int choice, int call);

}  // namespace foretoken::server
