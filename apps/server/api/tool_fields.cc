#include "server/api/tool_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/sha256.h"
#include "base/utf8.h"
#include "json/ordered_json.h"
#include "server/api/api_json.h"

namespace foretoken::server {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxTools = 128;
constexpr std::size_t kMaxNameBytes = 64;

bool IsToolName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.size() <= kMaxNameBytes &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

// A function's members; `ordered` are they in the order that they were written in.
void ReadFunction(const OrderedJson& ordered, FieldReader* fields, ApiRequest* request) {
  ChatTool tool;
  std::string description;
  fields->String("name", &tool.name);
  fields->String("description", &description);
  fields->Bool("strict", &tool.strict);
  if (const Json* parameters = fields->Find("parameters"); parameters != nullptr) {
    if (!parameters->is_object()) fields->Refuse("parameters", "a JSON Schema, an object");
    tool.parameters = ordered["parameters"].dump();
  }
  AddTool(std::move(tool), fields, request);
}

// Each reads one of the tools, in the order that it was written in, and gives it as chat templates
// have it.

// {"type": "function", "function": {...}}
OrderedJson ReadTool(const OrderedJson& ordered, FieldReader* fields, ApiRequest* request) {
  std::string type;
  fields->String("type", &type);
  const Json* function = fields->Find("function");
  if (type != "function" || function == nullptr || !function->is_object()) {
    fields->Refuse("type", "\"function\", with a 'function' beside it");
    return {};
  }
  FieldReader inner = fields->Inner("function", *function);
  ReadFunction(ordered["function"], &inner, request);
  inner.Close();
  return ordered;
}

// {"type": "function", ...}
OrderedJson ReadFlatTool(const OrderedJson& ordered, FieldReader* fields, ApiRequest* request) {
  std::string type;
  fields->String("type", &type);
  if (type != "function") {
    fields->Refuse("type", "\"function\": this server has no other tools");
  }
  if (!fields->ok()) return {};
  ReadFunction(ordered, fields, request);
  OrderedJson function = ordered;
  function.erase("type");
  return {{"type", "function"}, {"function", std::move(function)}};
}

// Reads `tools`, each by `read`, and `parallel_tool_calls`.
void ReadToolList(std::string_view body,
                  OrderedJson (*read)(const OrderedJson&, FieldReader*, ApiRequest*),
                  FieldReader* fields, ApiRequest* request) {
  const Json* tools = fields->Find("tools");
  if (tools != nullptr && (!tools->is_array() || tools->size() > kMaxTools)) {
    return fields->Refuse("tools", fmt::format("an array of at most {} functions", kMaxTools));
  }
  if (tools != nullptr && !tools->empty()) {
    const OrderedJson ordered = ParseOrdered(body)["tools"];
    OrderedJson all = OrderedJson::array();
    for (std::size_t i = 0; i < tools->size() && fields->ok(); ++i) {
      FieldReader tool = fields->Inner(fmt::format("tools[{}]", i), (*tools)[i]);
      all.push_back(read(ordered[i], &tool, request));
      tool.Close();
    }
    request->chat.tools = all.dump();
  }
  bool parallel = true;
  fields->Bool("parallel_tool_calls", &parallel);
  request->one_call = !parallel;
}

void ReadChoiceWord(const Json& word, FieldReader* body, ApiRequest* request) {
  if (word == Json("auto")) return;
  if (word == Json("none")) {
    request->tools.clear();
    request->chat.tools.clear();
  } else if (word == Json("required")) {
    request->must_call = true;
    if (request->tools.empty()) body->Fail("tool_choice", "'tool_choice' needs 'tools' to call");
  } else {
    body->Refuse("tool_choice", "auto, none, required, or an object that names a function");
  }
}

void ReadToolChoice(FieldReader* body, ApiRequest* request) {
  const Json* choice = body->Find("tool_choice");
  if (choice == nullptr) return;
  if (!choice->is_object()) return ReadChoiceWord(*choice, body, request);
  FieldReader fields = body->Inner("tool_choice", *choice);
  std::string type;
  std::string name;
  fields.String("type", &type);
  const Json* function = fields.Find("function");
  if (type != "function" || function == nullptr) {
    return body->Refuse("tool_choice", "{\"type\": \"function\", \"function\": {\"name\": ...}}");
  }
  FieldReader inner = fields.Inner("function", *function);
  inner.String("name", &name);
  CallOnly(name, &inner, request);
  inner.Close();
  fields.Close();
}

// One of an assistant's `tool_calls`.
void ReadCall(FieldReader call, OrderedJson* out) {
  std::string id;
  std::string type = "function";
  std::string name;
  std::string arguments;
  call.String("id", &id);
  call.String("type", &type);
  call.Has("index");
  const Json* function = call.Find("function");
  if (type != "function" || function == nullptr) {
    return call.Refuse("type", "\"function\", with a 'function' beside it");
  }
  FieldReader inner = call.Inner("function", *function);
  if (!inner.String("name", &name)) inner.Refuse("name", "a string");
  inner.String("arguments", &arguments);
  inner.Close();
  call.Close();
  out->push_back(TemplateCall(id, name, arguments));
}

}  // namespace

OrderedJson TemplateCall(const std::string& id, const std::string& name,
                         const std::string& arguments) {
  OrderedJson parsed = arguments;
  if (arguments.empty()) parsed = OrderedJson::object();
  if (const Result<Json> checked = ParseJson(arguments); checked.ok() && checked->is_object()) {
    parsed = ParseOrdered(arguments);
  }
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", std::move(parsed)}}}};
}

void AddTool(ChatTool tool, FieldReader* fields, ApiRequest* request) {
  if (!IsToolName(tool.name)) {
    return fields->Refuse("name",
                          fmt::format("1 to {} of a-z, A-Z, 0-9, _, - and .", kMaxNameBytes));
  }
  if (std::ranges::count(request->tools, tool.name, &ChatTool::name) > 0) {
    return fields->Fail("name", fmt::format("two of the tools are called '{}'", tool.name));
  }
  request->tools.push_back(std::move(tool));
}

void CallOnly(const std::string& name, FieldReader* fields, ApiRequest* request) {
  std::erase_if(request->tools, [&](const ChatTool& tool) { return tool.name != name; });
  request->must_call = true;
  if (request->tools.empty()) {
    fields->Fail("name", fmt::format("'tool_choice' names the function '{}', which is none of the "
                                     "'tools'",
                                     Shortened(name)));
  }
}

void ReadTools(std::string_view body, FieldReader* fields, ApiRequest* request) {
  ReadToolList(body, ReadTool, fields, request);
  if (fields->ok()) ReadToolChoice(fields, request);
}

void ReadFlatTools(std::string_view body, FieldReader* fields, ApiRequest* request) {
  ReadToolList(body, ReadFlatTool, fields, request);
  if (const Json* tools = fields->Find("tools"); tools != nullptr && !tools->empty()) {
    request->repeated["tools"] = *tools;
  }
  const Json* choice = fields->Find("tool_choice");
  if (choice == nullptr || !fields->ok()) return;
  request->repeated["tool_choice"] = *choice;
  if (!choice->is_object()) return ReadChoiceWord(*choice, fields, request);
  FieldReader chosen = fields->Inner("tool_choice", *choice);
  std::string type;
  std::string name;
  chosen.String("type", &type);
  if (type != "function") chosen.Refuse("type", "\"function\", with a 'name' beside it");
  chosen.String("name", &name);
  CallOnly(name, &chosen, request);
  chosen.Close();
}

void ReadToolsOfMessage(FieldReader* message, ChatMessage* turn) {
  OrderedJson more = OrderedJson::object();
  std::string text;
  if (message->String("tool_call_id", &text)) more["tool_call_id"] = text;
  if (message->String("name", &text)) more["name"] = text;
  if (message->String("reasoning_content", &text)) more["reasoning_content"] = text;
  if (const Json* calls = message->Find("tool_calls"); calls != nullptr && !calls->empty()) {
    if (!calls->is_array()) return message->Refuse("tool_calls", "an array of calls");
    OrderedJson& read = more["tool_calls"] = OrderedJson::array();
    for (std::size_t i = 0; i < calls->size() && message->ok(); ++i) {
      ReadCall(message->Inner(fmt::format("tool_calls[{}]", i), (*calls)[i]), &read);
    }
  }
  if (!more.empty()) turn->more = Dump(more);
}

void NameToolAnswers(std::vector<ChatMessage>* messages) {
  std::unordered_map<std::string, OrderedJson> names;  // Of functions, by the ids of calls.
  for (ChatMessage& message : *messages) {
    if (message.more.empty()) continue;
    OrderedJson more = ParseOrdered(message.more);
    for (const OrderedJson& call : more.value("tool_calls", OrderedJson::array())) {
      names[call["id"].get<std::string>()] = call["function"]["name"];
    }
    if (!more.contains("tool_call_id") || more.contains("name")) continue;
    const auto name = names.find(more["tool_call_id"].get<std::string>());
    if (name == names.end()) continue;
    more["name"] = name->second;
    message.more = Dump(more);
  }
}

std::string CallId(std::string_view reply, int choice, int call) {
  return Sha256Hex(fmt::format("{} {} {}", reply, choice, call)).substr(0, 9);
}

}  // namespace foretoken::server
