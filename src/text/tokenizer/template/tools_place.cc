#include "text/tokenizer/template/tools_place.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

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

}  // namespace foretoken
