#include "apps/foretoken/server/doors/doors.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/api/tool_fields.h"
#include "json/json.h"

namespace foretoken::server {
namespace {

// Whether a message's content has blocks other than text.
bool HasBlocks(const Json& content) {
  if (!content.is_array()) return false;
  return std::ranges::any_of(content, [](const Json& block) { return PartType(block) != "text"; });
}

// A message of blocks, as turns of a chat: each result of a tool is one of its own.
struct BlocksOf {
  std::string text;
  Json more = Json::object();
  std::vector<ChatMessage> results;

  void AddThoughts(const std::string& thoughts) {
    std::string all = more.value("reasoning_content", "");
    more["reasoning_content"] = all + (all.empty() ? "" : "\n") + thoughts;
  }
};

// A call of one of the client's functions; `ordered` is the block with its members in the order
// that they came in.
void ReadToolUse(FieldReader* block, const Json& ordered, BlocksOf* read) {
  std::string id;
  std::string name;
  block->String("id", &id);
  if (!block->String("name", &name)) block->Refuse("name", "a string");
  const Json* input = block->Find("input");
  if (input == nullptr || !input->is_object()) return block->Refuse("input", "an object");
  block->Has("caller");
  read->more["tool_calls"].push_back(
      {{"id", id},
       {"type", "function"},
       {"function", {{"name", name}, {"arguments", ordered["input"]}}}});
}

void ReadToolResultBlock(FieldReader* block, BlocksOf* read) {
  std::string id;
  bool failed = false;
  ChatMessage result{.role = "tool", .content = {}};
  if (!block->String("tool_use_id", &id)) block->Refuse("tool_use_id", "a string");
  block->Bool("is_error", &failed);
  ReadToolResult(block, "content", kTextParts, &result.content);
  result.more = Dump({{"tool_call_id", id}});
  read->results.push_back(std::move(result));
}

void ReadBlock(FieldReader block, const Json& json, const Json& ordered, BlocksOf* read) {
  const std::string type = PartType(json);
  std::string text;
  SkipFields(&block, {"type", "cache_control"});
  if (const std::optional<std::string> found = TextOfPart(json, kTextParts)) {
    read->text += *found;
    return;
  }
  if (type == "thinking") {
    if (block.String("thinking", &text)) read->AddThoughts(text);
    block.Has("signature");
  } else if (type == "redacted_thinking") {
    block.Has("data");
  } else if (type == "tool_use") {
    ReadToolUse(&block, ordered, read);
  } else if (type == "tool_result") {
    ReadToolResultBlock(&block, read);
  } else if (type.empty() || type == "text" || type == "image" || type == "document") {
    block.Refuse("type", "text, thinking, tool_use or tool_result: this server reads text only");
  } else {
    return block.LeaveOut("type", type);  // What tools did that ran on another server.
  }
  block.Close();
}

void ReadBlocks(FieldReader* message, const Json& ordered, std::vector<ChatMessage>* messages) {
  std::string role;
  message->String("role", &role);
  if (role != "user" && role != "assistant" && role != "system") {
    message->Refuse("role", "user, assistant or system");
  }
  const Json* content = message->Find("content");
  BlocksOf read;
  const Json& blocks = ordered["content"];
  for (std::size_t i = 0; i < content->size() && message->ok(); ++i) {
    ReadBlock(message->Inner(fmt::format("content[{}]", i), (*content)[i]), (*content)[i],
              blocks[i], &read);
  }
  std::ranges::move(read.results, std::back_inserter(*messages));
  message->Close();
  if (role == "user" && read.text.empty()) return;
  ChatMessage turn{.role = role, .content = std::move(read.text)};
  if (!read.more.empty()) turn.more = Dump(read.more);
  messages->push_back(std::move(turn));
}

// The field `messages`; `ordered` is the body.
void ReadTurns(FieldReader* body, const Json& ordered, std::vector<ChatMessage>* messages) {
  const auto turns = ordered.find("messages");
  ForEachMessage(body, "messages", [&](FieldReader* message, std::size_t i) {
    const Json* content = message->Find("content");
    if (content != nullptr && HasBlocks(*content)) {
      return ReadBlocks(message, (*turns)[i], messages);
    }
    ReadTurn(message, {.types = kTextParts, .more = {}}, &messages->emplace_back());
    message->Close();
  });
  NameToolAnswers(messages);
}

// One of the tools, as chat templates have it; `ordered` is it with its members in order.
Json ReadFunctionTool(FieldReader* fields, const Json& ordered, ApiRequest* request) {
  std::string description;
  ChatTool tool;
  fields->String("name", &tool.name);
  fields->String("description", &description);
  fields->Bool("strict", &tool.strict);
  SkipFields(fields, {"cache_control", "input_examples", "allowed_callers", "defer_loading",
                      "eager_input_streaming"});
  const Json* schema = fields->Find("input_schema");
  if (schema == nullptr || !schema->is_object()) {
    fields->Refuse("input_schema", "a JSON Schema, an object");
    return {};
  }
  Json function = {{"name", tool.name}};
  if (!description.empty()) function["description"] = description;
  function["parameters"] = schema->empty() ? NoParameters() : ordered["input_schema"];
  tool.parameters = function["parameters"].dump();
  AddTool(std::move(tool), fields, request);
  fields->Close();
  return {{"type", "function"}, {"function", std::move(function)}};
}

// `tools`, of which those of Anthropic's own are left out.
void ReadAnthropicTools(FieldReader* body, const Json& ordered, ApiRequest* request) {
  const Json* tools = body->Find("tools");
  if (tools == nullptr || tools->empty()) return;
  if (!tools->is_array()) return body->Refuse("tools", "an array");
  const Json& listed = ordered["tools"];
  Json all = Json::array();
  for (std::size_t i = 0; i < tools->size() && body->ok(); ++i) {
    FieldReader fields = body->Inner(fmt::format("tools[{}]", i), (*tools)[i]);
    std::string type = "custom";
    fields.String("type", &type);
    if (type != "custom") {
      fields.LeaveOut("type", type);
    } else {
      all.push_back(ReadFunctionTool(&fields, listed[i], request));
    }
  }
  if (!all.empty()) request->chat.tools = all.dump();
}

void ReadAnthropicToolChoice(FieldReader* body, ApiRequest* request) {
  const Json* choice = body->Find("tool_choice");
  if (choice == nullptr || !body->ok()) return;
  FieldReader fields = body->Inner("tool_choice", *choice);
  std::string type;
  std::string name;
  fields.String("type", &type);
  fields.Bool("disable_parallel_tool_use", &request->one_call);
  if (type == "tool") {
    fields.String("name", &name);
    CallOnly(name, "tool_choice", body, request);
  } else if (type == "none") {
    request->tools.clear();
    request->chat.tools.clear();
  } else if (type == "any") {
    MustCall("type", &fields, request);
  } else if (type != "auto") {
    fields.Refuse("type", "auto, any, tool or none");
  }
  fields.Close();
}

void ReadThinking(FieldReader* body, ApiRequest* request) {
  const Json* thinking = body->Find("thinking");
  if (thinking == nullptr) return;
  FieldReader fields = body->Inner("thinking", *thinking);
  std::string type;
  fields.String("type", &type);
  fields.Has("display");
  if (type == "disabled") {
    SetReasoning("none", request);
    request->budget.tokens = 0;  // Templates that know nothing of it keep to it, too.
  } else if (type == "enabled") {
    SetReasoning("medium", request);
    if (!fields.Int("budget_tokens", 1, ReasoningBudget::kMaxTokens, &request->budget.tokens)) {
      fields.Refuse("budget_tokens", "how many tokens thoughts may have, from 1");
    }
  } else if (type != "adaptive") {
    fields.Refuse("type", "enabled, disabled or adaptive");
  }
  fields.Close();
}

// What Claude Code puts before its system prompt, for Anthropic's accounts and another one in each
// request: no part of the chat, and the cached prefix would end there.
constexpr std::string_view kBillingHeader = "x-anthropic-billing-header:";

void ReadSystem(FieldReader* body, std::vector<ChatMessage>* messages) {
  const Json* system = body->Find("system");
  if (system == nullptr) return;
  std::string text;
  if (!system->is_array()) ReadTextField(body, "system", kTextParts, &text);
  for (std::size_t i = 0; system->is_array() && i < system->size() && body->ok(); ++i) {
    const std::optional<std::string> block = TextOfPart((*system)[i], kTextParts);
    if (!block.has_value()) {
      return body->Refuse("system",
                          "a string or an array of {\"type\": \"text\", \"text\": ...}: "
                          "this server reads text only");
    }
    if (!block->starts_with(kBillingHeader)) text += *block;
  }
  if (system->is_array() && text.empty()) return;
  messages->push_back({"system", std::move(text)});
}

// Anthropic's API goes on with a last turn of the assistant's.
void ReadLastTurn(FieldReader* body, ApiRequest* request) {
  const ChatMessage& last = request->chat.messages.back();
  if (last.role != "assistant") return;
  request->chat.continues_last = true;
  if (HasCalls(last)) {
    body->Fail("messages",
               "'messages' must not end with calls of tools: their results ('tool_result') follow "
               "them in a turn of the user's");
  }
}

// The chat: `messages` and, before them, `system`, and the tools that may be called in it.
void ReadAnthropicChat(std::string_view body, FieldReader* fields, ApiRequest* request) {
  const Json ordered = Json::Parse(body);
  ReadSystem(fields, &request->chat.messages);
  ReadTurns(fields, ordered, &request->chat.messages);
  if (fields->ok()) ReadLastTurn(fields, request);
  ReadAnthropicTools(fields, ordered, request);
  if (const Json* servers = fields->Find("mcp_servers"); servers != nullptr && !servers->empty()) {
    fields->LeaveOut("mcp_servers", "tools of other servers");
  }
  ReadAnthropicToolChoice(fields, request);
  ReadReasoningBudget(fields, request);
  ReadThinking(fields, request);
  ReadTemplateVariables(fields, request);
}

// A JSON Schema as {"type": "json_schema", "schema": ...}, at `path` of the body.
void ReadSchemaFormat(std::string_view body, std::span<const std::string_view> path,
                      FieldReader fields, OutputFormat* format) {
  std::string type;
  fields.String("type", &type);
  if (type != "json_schema") fields.Refuse("type", "json_schema");
  if (!format->field.empty()) {
    return fields.Fail("schema",
                       fmt::format("'{}' contradicts 'schema'; give one of them", format->field));
  }
  ReadSchemaField(body, path, &fields, format);
  fields.Close();
}

// `output_config`, whose `format` is a JSON Schema, and `output_format`, its older name.
void ReadOutputConfig(std::string_view body, FieldReader* fields, OutputFormat* format) {
  if (const Json* wanted = fields->Find("output_format"); wanted != nullptr) {
    constexpr std::string_view kPath[] = {"output_format", "schema"};
    ReadSchemaFormat(body, kPath, fields->Inner("output_format", *wanted), format);
  }
  const Json* config = fields->Find("output_config");
  if (config == nullptr) return;
  FieldReader inner = fields->Inner("output_config", *config);
  LeaveOutUnless(&inner, "effort", {"high"});
  if (const Json* wanted = inner.Find("format"); wanted != nullptr) {
    constexpr std::string_view kPath[] = {"output_config", "format", "schema"};
    ReadSchemaFormat(body, kPath, inner.Inner("format", *wanted), format);
  }
  inner.Close();
}

Result<ApiRequest> ReadAnthropic(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    ReadAnthropicChat(body, fields, request);
    constexpr int kMost = 1 << 30;
    if (!fields->Int("max_tokens", 1, kMost, &request->stop.max_tokens)) {
      fields->Refuse("max_tokens", "a number of tokens, from 1");
    }
    ReadSampling(fields, request);
    ReadStopStrings(fields, "stop_sequences", &request->stop);
    ReadStopTokens(fields, &request->stop);
    ReadOutputFormat(body, fields, &request->format);
    ReadFormatsOfOthers(body, fields, &request->format);
    ReadOutputConfig(body, fields, &request->format);
    fields->Bool("stream", &request->stream);
    ReadSpeculation(fields, request);
    SkipFields(fields, {"metadata", "service_tier", "cache_control", "inference_geo", "speed",
                        "user_profile_id"});
  });
}

std::string_view AnthropicErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

std::string AnthropicSentence(const ApiError& error) {
  if (!error.too_long.has_value()) return BoundedMessage(error);
  return fmt::format("prompt is too long: {} tokens > {} maximum", error.too_long->Count(),
                     error.too_long->most);
}

std::string AnthropicErrorBody(const ApiError& error) {
  return Dump(
      {{"type", "error"},
       {"error",
        {{"type", AnthropicErrorType(error.status)}, {"message", AnthropicSentence(error)}}}});
}

}  // namespace

const Door& AnthropicDoor() {
  static constexpr Door kDoor = {.path = "/v1/messages",
                                 .id_prefix = "msg_",
                                 .prompt = "messages",
                                 .limit = "max_tokens",
                                 .read = ReadAnthropic,
                                 .writer = AnthropicWriter,
                                 .error = AnthropicErrorBody};
  return kDoor;
}

Result<ApiRequest> ReadCountTokens(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    ReadAnthropicChat(body, fields, request);
    SkipFields(fields, {"output_config", "cache_control"});
  });
}

}  // namespace foretoken::server
