#include "text/tokenizer/template/chat_template.h"

#include <utility>

#include "base/text/utf8.h"
#include "json/json.h"

namespace foretoken {
namespace {

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
