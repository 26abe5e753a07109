#include "text/tokenizer/template/chat_template.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "base/text/utf8.h"
#include "json/json.h"

namespace foretoken {
namespace {

// A function's name that no template has, in a chat.
constexpr std::string_view kProbeName = "a_function_to_look_for";
constexpr std::string_view kProbe = R"({
  "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
  "tools": [{"type": "function", "function": {
    "name": "a_function_to_look_for", "description": "Does something.",
    "parameters": {"type": "object", "properties": {}, "required": []}}}],
  "documents": null,
  "add_generation_prompt": true
})";

// What the functions are, without what says that they are functions, as Python's json.dumps writes
// it: so the cards of models that read a text have it.
constexpr std::string_view kToolsAsText =
    "[{% for tool in tools %}{{ (tool.function if tool.function is mapping else tool) | tojson "
    "}}{{ ', ' if not loop.last }}{% endfor %}]";

Result<std::string> ToolsAsText(const Json& tools) {
  FT_ASSIGN_OR_RETURN(const jinja::Template text, jinja::Template::Parse(kToolsAsText));
  jinja::Inputs inputs;
  inputs.data["tools"] = tools;
  FT_ASSIGN_OR_RETURN(jinja::Text rendered, text.Render(inputs));
  return std::move(rendered).Release();
}

bool Shows(const jinja::Template& chat_template, const std::map<std::string, std::string>& marks,
           ToolsPlace place) {
  std::tm now{};
  now.tm_mday = 1;
  jinja::Inputs inputs{.data = Json::Parse(kProbe), .own = marks, .now = &now};
  if (!PutTools(place, &inputs.data).ok()) return false;
  const Result<jinja::Text> text = chat_template.Render(inputs);
  return text.ok() && text->bytes().find(kProbeName) != std::string::npos;
}

// Stands behind the content of a turn that the answer goes on with: what the template writes behind
// it ends the turn.
constexpr std::string_view kLastEnd = "[[the answer goes on here]]";

/// `text` as JSON of one type; null where it is empty.
Result<Json> ReadJson(std::string_view name, const std::string& text, Json::Kind type) {
  if (text.empty()) return Json();
  Json json = Json::Parse(text);
  if (json.kind() == type) return json;
  return Invalid("the {} of a chat must be a JSON {}, not '{}'", name,
                 type == Json::Kind::kArray ? "array" : "object", Shortened(text, 40));
}

Result<Json> MessageJson(const ChatMessage& message) {
  Json json = {{"role", message.role}, {"content", message.content}};
  FT_ASSIGN_OR_RETURN(const Json more,
                      ReadJson("further fields of a message", message.more, Json::Kind::kObject));
  for (const auto& [name, value] : more.items()) json[name] = value;
  return json;
}

/// What the template finds by name.
Result<Json> VariablesOf(const ChatInput& chat) {
  Json data;
  Json& messages = data["messages"] = Json::array();
  for (const ChatMessage& message : chat.messages) {
    FT_ASSIGN_OR_RETURN(Json json, MessageJson(message));
    messages.push_back(std::move(json));
  }
  FT_ASSIGN_OR_RETURN(data["tools"], ReadJson("tools", chat.tools, Json::Kind::kArray));
  FT_ASSIGN_OR_RETURN(data["documents"], ReadJson("documents", chat.documents, Json::Kind::kArray));
  FT_ASSIGN_OR_RETURN(const Json variables,
                      ReadJson("template variables", chat.variables, Json::Kind::kObject));
  constexpr std::size_t kMostVariables = 256;
  if (variables.size() > kMostVariables) {
    return Invalid("a chat template is given at most {} variables, not {}", kMostVariables,
                   variables.size());
  }
  for (const auto& [name, value] : variables.items()) {
    if (data.contains(name)) {
      return Invalid("'{}' is no variable that can be given to a chat template: the chat itself is",
                     name);
    }
    data[name] = value;
  }
  if (chat.continues_last && !messages.empty()) {
    Json& content = messages.back()["content"];
    content = content.get<std::string>() + std::string(kLastEnd);
    data["add_generation_prompt"] = false;
  }
  if (!data.contains("add_generation_prompt")) data["add_generation_prompt"] = true;
  return data;
}

// What the template wrote up to the end of the last message's content.
Result<jinja::Text> UpToLastEnd(const jinja::Text& whole) {
  const std::size_t end = whole.bytes().rfind(kLastEnd);
  if (end == std::string::npos) {
    return InvalidInput(
        "the chat template does not write the assistant's last turn as it is, so the answer cannot "
        "go on with it; end the chat with a turn of the user's");
  }
  jinja::Text text;
  text.Append(whole, 0, end);
  return text;
}

}  // namespace

ToolsPlace FindToolsPlace(const jinja::Template& chat_template,
                          const std::map<std::string, std::string>& marks) {
  constexpr std::array kPlaces = {ToolsPlace::kVariable, ToolsPlace::kSystemMessage,
                                  ToolsPlace::kSystemText};
  const auto* const found = std::ranges::find_if(
      kPlaces, [&](ToolsPlace place) { return Shows(chat_template, marks, place); });
  return found == kPlaces.end() ? ToolsPlace::kVariable : *found;
}

Status PutTools(ToolsPlace place, Json* variables) {
  Json tools = (*variables)["tools"];
  if (tools.empty() || place == ToolsPlace::kVariable) return {};
  if (place == ToolsPlace::kSystemText) {
    FT_ASSIGN_OR_RETURN(tools, ToolsAsText(tools));
  }
  Json& messages = (*variables)["messages"];
  auto system = std::ranges::find_if(
      messages, [](const Json& message) { return message["role"] == "system"; });
  if (system == messages.end()) {
    system = messages.insert(messages.begin(), Json{{"role", "system"}, {"content", ""}});
  }
  if (!system->contains("tools")) (*system)["tools"] = std::move(tools);
  return {};
}

Result<ChatTemplate> ChatTemplate::Parse(std::string_view jinja,
                                         std::map<std::string, std::string> marks) {
  FT_ASSIGN_OR_RETURN(jinja::Template parsed, jinja::Template::Parse(jinja));
  return ChatTemplate(std::move(parsed), std::move(marks));
}

Result<jinja::Text> ChatTemplate::Render(const ChatInput& chat) const {
  jinja::Inputs inputs{.own = marks_, .now = chat.now.has_value() ? &*chat.now : nullptr};
  FT_ASSIGN_OR_RETURN(inputs.data, VariablesOf(chat));
  FT_RETURN_IF_ERROR(PutTools(tools_place_, &inputs.data));
  if (!chat.continues_last) return template_.Render(inputs);
  FT_ASSIGN_OR_RETURN(const jinja::Text whole, template_.Render(inputs));
  return UpToLastEnd(whole);
}

}  // namespace foretoken
