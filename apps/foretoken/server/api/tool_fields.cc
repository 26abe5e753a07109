#include "apps/foretoken/server/api/tool_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "apps/foretoken/server/api/request_fields.h"
#include "base/numbers/sha256.h"
#include "base/text/utf8.h"
#include "json/json.h"

namespace foretoken::server {
namespace {

// The longest names are Anthropic's, of 128, and those that stand behind a namespace.
constexpr std::size_t kMaxTools = 1024;
constexpr std::size_t kMaxToolNameBytes = 256;

bool IsToolName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.size() <= kMaxToolNameBytes &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

// Whether a function that is told of with this schema takes nothing: it names no members, and says
// of no others that they may come. By JSON Schema it would take any, which nobody means who calls a
// function so; llama.cpp has it likewise.
bool TakesNothing(const Json& schema) {
  if (schema.value("type", Json()) != Json("object")) return false;
  if (schema.value("properties", Json()) != Json::object()) return false;
  constexpr std::string_view kOfNoMember[] = {"type",    "properties", "title",   "description",
                                              "$id",     "$schema",    "$defs",   "definitions",
                                              "default", "examples",   "$comment"};
  return std::ranges::all_of(schema.items(), [&](const auto& member) {
    return std::ranges::count(kOfNoMember, member.first) > 0 ||
           (member.first == "required" && member.second == Json::array());
  });
}

// Adds the function as which a model is told of a tool; `function` is what its template reads.
void AddFunction(ToolShape shape, bool strict, Json* function, FieldReader* fields,
                 ApiRequest* request) {
  const std::string name = FunctionName(shape.space, shape.name);
  (*function)["name"] = name;
  AddTool({.name = name, .parameters = (*function)["parameters"].dump(), .strict = strict}, fields,
          request);
  if (shape.custom || !shape.space.empty()) request->shapes[name] = std::move(shape);
}

// Reads the members of a function in the namespace `space`. `function` are they in the order that
// they were written in, and become what the template reads.
void ReadFunction(const std::string& space, Json* function, FieldReader* fields,
                  ApiRequest* request) {
  ToolShape shape{.space = space};
  std::string description;
  bool strict = false;
  fields->String("name", &shape.name);
  fields->String("description", &description);
  fields->Bool("strict", &strict);
  const Json* parameters = fields->Find("parameters");
  if (parameters != nullptr && !parameters->is_object()) {
    fields->Refuse("parameters", "a JSON Schema, an object");
  }
  if (!fields->ok()) return;
  if (parameters == nullptr || parameters->empty()) (*function)["parameters"] = NoParameters();
  AddFunction(std::move(shape), strict, function, fields, request);
}

Json ToolOfTemplate(Json function) {
  return {{"type", "function"}, {"function", std::move(function)}};
}

// Each of the next four reads one of the tools, in the order that it was written in, and adds it to
// `all` as chat templates have it. A tool that is no function is left out.

// {"type": "function", "function": {...}}
void ReadTool(Json tool, FieldReader* fields, ApiRequest* request, Json* all) {
  std::string type = "function";
  fields->String("type", &type);
  if (type != "function") return fields->LeaveOut("type", type);
  const Json* function = fields->Find("function");
  if (function == nullptr || !function->is_object()) {
    return fields->Refuse("type", "\"function\", with a 'function' beside it");
  }
  FieldReader inner = fields->Inner("function", *function);
  ReadFunction("", &tool["function"], &inner, request);
  inner.Close();
  fields->Close();
  if (!tool.contains("type")) tool["type"] = type;
  all->push_back(std::move(tool));
}

// One of the old `functions`, which are what a tool has as its `function`.
void ReadOldFunction(Json function, FieldReader* fields, ApiRequest* request, Json* all) {
  ReadFunction("", &function, fields, request);
  fields->Close();
  all->push_back(ToolOfTemplate(std::move(function)));
}

// A tool that takes a text; one that says in which form is left out, as that would not be held to.
void ReadCustomTool(const std::string& space, FieldReader* fields, ApiRequest* request, Json* all) {
  std::string form = "text";
  if (const Json* format = fields->Find("format"); format != nullptr) {
    fields->Inner("format", *format).String("type", &form);
  }
  if (form != "text") return fields->LeaveOut("type", "custom");
  ToolShape shape{.space = space, .custom = true};
  std::string description;
  fields->String("name", &shape.name);
  fields->String("description", &description);
  fields->Has("defer_loading");
  fields->Close();
  Json function = {{"name", ""}, {"description", description}};
  function["parameters"] = NoParameters();
  function["parameters"]["properties"]["input"] = {{"type", "string"}};
  function["parameters"]["required"] = Json::array({"input"});
  AddFunction(std::move(shape), false, &function, fields, request);
  all->push_back(ToolOfTemplate(std::move(function)));
}

// A tool as responses have it, in the namespace `space`: {"type": "function", ...}, or the like.
void ReadFlatToolOf(const std::string& space, Json tool, FieldReader* fields, ApiRequest* request,
                    Json* all) {
  std::string type;
  fields->String("type", &type);
  if (type == "custom") return ReadCustomTool(space, fields, request, all);
  if (type == "namespace" && space.empty()) {
    std::string name;
    fields->String("name", &name);
    fields->Has("description");
    const Json* tools = fields->Find("tools");
    if (tools == nullptr || !tools->is_array()) return fields->Refuse("tools", "an array of tools");
    for (std::size_t i = 0; i < tools->size() && fields->ok(); ++i) {
      FieldReader inner = fields->Inner(fmt::format("tools[{}]", i), (*tools)[i]);
      ReadFlatToolOf(name, tool["tools"][i], &inner, request, all);
    }
    return fields->Close();
  }
  if (type.empty()) return fields->Refuse("type", "\"function\", or that of another tool");
  if (type != "function") return fields->LeaveOut("type", type);
  ReadFunction(space, &tool, fields, request);
  fields->Has("defer_loading");
  fields->Close();
  if (!fields->ok()) return;
  tool.erase("type");
  tool.erase("defer_loading");
  all->push_back(ToolOfTemplate(std::move(tool)));
}
void ReadFlatTool(Json tool, FieldReader* fields, ApiRequest* request, Json* all) {
  ReadFlatToolOf("", std::move(tool), fields, request, all);
}

// Reads the field `name`, a list of tools, each by `read`.
void ReadToolList(std::string_view body, std::string_view name,
                  void (*read)(Json, FieldReader*, ApiRequest*, Json*), FieldReader* fields,
                  ApiRequest* request) {
  const Json* tools = fields->Find(name);
  if (tools == nullptr) return;
  if (!tools->is_array() || tools->size() > kMaxTools) {
    return fields->Refuse(name, fmt::format("an array of at most {} functions", kMaxTools));
  }
  const Json ordered = Json::Parse(body)[name];
  Json all = Json::array();
  for (std::size_t i = 0; i < tools->size() && fields->ok(); ++i) {
    FieldReader tool = fields->Inner(fmt::format("{}[{}]", name, i), (*tools)[i]);
    read(ordered[i], &tool, request, &all);
  }
  if (!all.empty()) request->chat.tools = all.dump();
}

void ReadParallelCalls(FieldReader* fields, ApiRequest* request) {
  bool parallel = true;
  fields->Bool("parallel_tool_calls", &parallel);
  request->one_call = !parallel;
}

// `name` is the field that says "auto", "none" or "required".
void ReadChoiceWord(std::string_view name, const Json& word, FieldReader* fields,
                    ApiRequest* request) {
  if (word == Json("auto")) return;
  if (word == Json("none")) {
    request->tools.clear();
    request->chat.tools.clear();
  } else if (word == Json("required")) {
    MustCall(name, fields, request);
  } else {
    fields->Refuse(name, "auto, none, required, or an object that names a function");
  }
}

// A function that is chosen by its name, in a `function` of its own or beside its type.
std::string ChosenFunction(bool flat, FieldReader* fields) {
  std::string name;
  std::string space;
  if (flat) {
    fields->String("name", &name);
    fields->String("namespace", &space);
    return FunctionName(space, name);
  }
  const Json* function = fields->Find("function");
  if (function == nullptr) {
    fields->Refuse("function", "an object with the 'name' of a function");
    return {};
  }
  FieldReader inner = fields->Inner("function", *function);
  inner.String("name", &name);
  inner.Close();
  return name;
}

// The template is told of the functions that may be called, and of no others.
void ReadAllowedTools(bool flat, FieldReader* fields, ApiRequest* request) {
  std::vector<std::string> names;
  const Json* tools = fields->Find("tools");
  if (tools == nullptr || !tools->is_array()) return fields->Refuse("tools", "an array of tools");
  for (std::size_t i = 0; i < tools->size() && fields->ok(); ++i) {
    FieldReader tool = fields->Inner(fmt::format("tools[{}]", i), (*tools)[i]);
    std::string type;
    tool.String("type", &type);
    if (type == "function" || (flat && type == "custom")) {
      names.push_back(ChosenFunction(flat, &tool));
      tool.Close();
    } else {
      tool.LeaveOut("type", type);
    }
  }
  const auto allowed = [&names](const std::string& name) {
    return std::ranges::count(names, name) > 0;
  };
  std::erase_if(request->tools, [&](const ChatTool& tool) { return !allowed(tool.name); });
  Json told = Json::array();
  if (!request->tools.empty()) {
    for (Json& tool : Json::Parse(request->chat.tools)) {
      if (allowed(tool["function"]["name"])) told.push_back(std::move(tool));
    }
  }
  request->chat.tools = told.empty() ? "" : told.dump();
  std::string mode = "auto";
  fields->String("mode", &mode);
  if (mode != "auto" && mode != "required") return fields->Refuse("mode", "auto or required");
  ReadChoiceWord("mode", mode, fields, request);
}

// `tool_choice`, whose members stand in an object called by its type unless it is `flat`.
void ReadToolChoice(bool flat, FieldReader* body, ApiRequest* request) {
  const Json* choice = body->Find("tool_choice");
  if (choice == nullptr || !body->ok()) return;
  if (!choice->is_object()) return ReadChoiceWord("tool_choice", *choice, body, request);
  FieldReader fields = body->Inner("tool_choice", *choice);
  std::string type;
  fields.String("type", &type);
  if (type == "function" || (flat && type == "custom")) {
    CallOnly(ChosenFunction(flat, &fields), "tool_choice", body, request);
  } else if (type == "allowed_tools" && flat) {
    ReadAllowedTools(flat, &fields, request);
  } else if (type == "allowed_tools" && fields.Has(type)) {
    FieldReader inner = fields.Inner(type, *fields.Find(type));
    ReadAllowedTools(flat, &inner, request);
    inner.Close();
  } else {
    return fields.Refuse("type", fmt::format("function or allowed_tools: '{}' is none of the tools "
                                             "that this server has",
                                             Shortened(type)));
  }
  fields.Close();
}

// OpenAI's old form: `functions` and `function_call`.
void ReadOldTools(std::string_view body, FieldReader* fields, ApiRequest* request) {
  if (request->tools.empty()) {
    ReadToolList(body, "functions", ReadOldFunction, fields, request);
    request->old_calls = !request->tools.empty();
  } else {
    MustBeEmpty(fields, "functions", "'tools' are there, which are the same in their new form");
  }
  const Json* choice = fields->Find("function_call");
  if (choice == nullptr || !fields->ok()) return;
  if (!choice->is_object()) return ReadChoiceWord("function_call", *choice, fields, request);
  FieldReader inner = fields->Inner("function_call", *choice);
  std::string name;
  inner.String("name", &name);
  inner.Close();
  CallOnly(name, "function_call", fields, request);
}

// A call's arguments as a JSON text: they are one, or the object itself.
std::string ReadArguments(FieldReader* fields) {
  const Json* arguments = fields->Find("arguments");
  if (arguments == nullptr) return {};
  if (arguments->is_object()) return arguments->dump();
  std::string text;
  fields->String("arguments", &text);
  return text;
}

// The function of a call: {"name": ..., "arguments": ...}
Json ReadCalledFunction(const std::string& id, FieldReader fields) {
  std::string name;
  if (!fields.String("name", &name)) fields.Refuse("name", "a string");
  const std::string arguments = ReadArguments(&fields);
  fields.Close();
  return TemplateCall(id, name, arguments);
}

// One of an assistant's `tool_calls`.
void ReadCall(FieldReader call, Json* out) {
  std::string id;
  std::string type = "function";
  call.String("id", &id);
  call.String("type", &type);
  call.Has("index");
  if (const Json* custom = call.Find("custom"); type == "custom" && custom != nullptr) {
    FieldReader inner = call.Inner("custom", *custom);
    std::string name;
    std::string input;
    if (!inner.String("name", &name)) inner.Refuse("name", "a string");
    inner.String("input", &input);
    out->push_back(TemplateCall(id, name, Dump({{"input", input}})));
    return call.Close();
  }
  const Json* function = call.Find("function");
  if (type != "function" || function == nullptr) {
    return call.Refuse("type", "\"function\", with a 'function' beside it");
  }
  out->push_back(ReadCalledFunction(id, call.Inner("function", *function)));
  call.Close();
}

}  // namespace

Json NoParameters() {
  return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
}

std::string FunctionName(const std::string& space, const std::string& name) {
  return space.empty() ? name : fmt::format("{}__{}", space, name);
}

Json TemplateCall(const std::string& id, const std::string& name, const std::string& arguments) {
  Json parsed = arguments;
  if (arguments.empty()) parsed = Json::object();
  if (const Result<Json> checked = ParseJson(arguments); checked.ok() && checked->is_object()) {
    parsed = Json::Parse(arguments);
  }
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", std::move(parsed)}}}};
}

void AddTool(ChatTool tool, FieldReader* fields, ApiRequest* request) {
  if (!IsToolName(tool.name)) {
    return fields->Refuse("name",
                          fmt::format("1 to {} of a-z, A-Z, 0-9, _, - and .", kMaxToolNameBytes));
  }
  if (std::ranges::count(request->tools, tool.name, &ChatTool::name) > 0) {
    return fields->Fail("name", fmt::format("two of the tools are called '{}'", tool.name));
  }
  if (TakesNothing(Json::Parse(tool.parameters))) tool.parameters = NoParameters().dump();
  request->tools.push_back(std::move(tool));
}

void MustCall(std::string_view name, FieldReader* fields, ApiRequest* request) {
  request->must_call = true;
  if (!request->tools.empty()) return;
  fields->Fail(name,
               "'tool_choice' needs 'tools' to call, and there is no function among those sent");
}

void CallOnly(const std::string& function, std::string_view name, FieldReader* fields,
              ApiRequest* request) {
  std::erase_if(request->tools, [&](const ChatTool& tool) { return tool.name != function; });
  request->must_call = true;
  if (!request->tools.empty()) return;
  fields->Fail(name,
               fmt::format("'{}' names '{}', which is none of the functions in 'tools': tools "
                           "of other kinds are left out",
                           name, Shortened(function)));
}

void ReadTools(std::string_view body, FieldReader* fields, ApiRequest* request) {
  ReadToolList(body, "tools", ReadTool, fields, request);
  ReadParallelCalls(fields, request);
  ReadToolChoice(/*flat=*/false, fields, request);
  if (fields->ok()) ReadOldTools(body, fields, request);
  if (request->old_calls) request->one_call = true;
}

void ReadFlatTools(std::string_view body, FieldReader* fields, ApiRequest* request) {
  ReadToolList(body, "tools", ReadFlatTool, fields, request);
  ReadParallelCalls(fields, request);
  if (const Json* tools = fields->Find("tools"); tools != nullptr && !tools->empty()) {
    request->repeated["tools"] = *tools;
  }
  if (const Json* choice = fields->Find("tool_choice"); choice != nullptr) {
    request->repeated["tool_choice"] = *choice;
  }
  ReadToolChoice(/*flat=*/true, fields, request);
}

void ReadToolsOfMessage(FieldReader* message, ChatMessage* turn) {
  Json more = Json::object();
  std::string text;
  if (message->String("tool_call_id", &text)) more["tool_call_id"] = text;
  if (message->String("name", &text)) more["name"] = text;
  // vLLM's name for it and that of others; clients send back what they know of both.
  if (message->String("reasoning", &text) && !text.empty()) more["reasoning_content"] = text;
  if (message->String("reasoning_content", &text)) more["reasoning_content"] = text;
  if (const Json* calls = message->Find("tool_calls"); calls != nullptr && !calls->empty()) {
    if (!calls->is_array()) return message->Refuse("tool_calls", "an array of calls");
    Json& read = more["tool_calls"] = Json::array();
    for (std::size_t i = 0; i < calls->size() && message->ok(); ++i) {
      ReadCall(message->Inner(fmt::format("tool_calls[{}]", i), (*calls)[i]), &read);
    }
  }
  if (const Json* call = message->Find("function_call"); call != nullptr) {
    more["tool_calls"].push_back(ReadCalledFunction("", message->Inner("function_call", *call)));
  }
  if (!more.empty()) turn->more = Dump(more);
}

void NameToolAnswers(std::vector<ChatMessage>* messages) {
  // The names of functions, by the ids of calls.
  std::unordered_map<std::string, Json> names;
  for (ChatMessage& message : *messages) {
    if (message.more.empty()) continue;
    Json more = Json::Parse(message.more);
    for (const Json& call : more.value("tool_calls", Json::array())) {
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
