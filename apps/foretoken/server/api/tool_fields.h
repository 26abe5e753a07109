#pragma once

#include <string>
#include <string_view>

#include "apps/foretoken/server/api/api_json.h"
#include "apps/foretoken/server/api/api_request.h"
#include "apps/foretoken/server/api/field_reader.h"

namespace foretoken::server {

// Tools as OpenAI's chats have them, which chat templates have as well.

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`, and the old `functions` and
/// `function_call`. Tools that are no functions are left out. `body` is the text that `fields` were
/// parsed from: the order of a schema's properties matters and parsed fields have lost it.
void ReadTools(std::string_view body, FieldReader* fields, ApiRequest* request);
/// The same as OpenAI's responses have it: a tool's and a choice's members are not in a `function`.
void ReadFlatTools(std::string_view body, FieldReader* fields, ApiRequest* request);
/// Checks a function that may be called and adds it.
void AddTool(ChatTool tool, FieldReader* fields, ApiRequest* request);
/// One of the functions must be called, as the field `name` of `fields` says.
void MustCall(std::string_view name, FieldReader* fields, ApiRequest* request);
/// Keeps the one called `function` alone, which the field `name` of `fields` says must be called.
void CallOnly(const std::string& function, std::string_view name, FieldReader* fields,
              ApiRequest* request);
/// What a function takes that says nothing of its parameters: nothing.
Json NoParameters();
/// How a model is told of the function `name` in the namespace `space`, which may be empty.
std::string FunctionName(const std::string& space, const std::string& name);

/// Reads what a message has besides role and content: the calls and thoughts of an assistant's, and
/// of a tool's which call it answers.
void ReadToolsOfMessage(FieldReader* message, ChatMessage* turn);
/// A call as chat templates read it: arguments are a string in requests and, where that is JSON,
/// the object in templates.
Json TemplateCall(const std::string& id, const std::string& name, const std::string& arguments);
/// Gives the answers of tools that come without a name that of the function which was called.
void NameToolAnswers(std::vector<ChatMessage>* messages);

/// The id of a choice's call: the same for the same three, nine characters as some templates want.
std::string CallId(std::string_view reply, int choice, int call);

}  // namespace foretoken::server
