#include "server/doors/anthropic.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "json/ordered_json.h"
#include "server/api/request_fields.h"
#include "server/api/tool_fields.h"
#include "server/doors/anthropic_replies.h"

namespace foretoken::server {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTextTypes[] = {"text"};

// Whether a message's content has blocks other than text, or one that shows something else.
bool HasBlocks(const Json& content) {
  if (!content.is_array()) return false;
  return std::ranges::any_of(content, [](const Json& block) {
    const Json type = block.is_object() ? block.value("type", Json()) : Json();
    return type == "tool_use" || type == "tool_result" || type == "thinking" ||
           type == "redacted_thinking";
  });
}

// A message of blocks, as turns of a chat: each result of a tool is one of its own.
struct BlocksOf {
  std::string text;
  OrderedJson more = OrderedJson::object();
  std::vector<ChatMessage> results;
};

// `ordered` is the block with its members in the order that they came in.
void ReadBlock(FieldReader* block, const OrderedJson& ordered, BlocksOf* read) {
  std::string type;
  std::string text;
  block->String("type", &type);
  block->Has("cache_control");
  if (type == "text") {
    if (block->String("text", &text)) read->text += text;
    block->Has("citations");
  } else if (type == "thinking") {
    if (block->String("thinking", &text)) read->more["reasoning_content"] = text;
    block->Has("signature");
  } else if (type == "redacted_thinking") {
    block->Has("data");
  } else if (type == "tool_use") {
    std::string name;
    block->String("id", &text);
    if (!block->String("name", &name)) block->Refuse("name", "a string");
    const Json* input = block->Find("input");
    if (input == nullptr || !input->is_object()) return block->Refuse("input", "an object");
    block->Has("caller");
    read->more["tool_calls"].push_back(
        {{"id", text},
         {"type", "function"},
         {"function", {{"name", name}, {"arguments", ordered["input"]}}}});
  } else if (type == "tool_result") {
    bool failed = false;
    ChatMessage result{.role = "tool", .content = {}};
    if (!block->String("tool_use_id", &text)) block->Refuse("tool_use_id", "a string");
    block->Bool("is_error", &failed);
    ReadText(block, "content", kTextTypes, &result.content);
    result.more = Dump({{"tool_call_id", text}});
    read->results.push_back(std::move(result));
  } else {
    block->Refuse("type", "text, thinking, tool_use or tool_result: this server reads text only");
  }
  block->Close();
}

void ReadBlocks(FieldReader* message, const OrderedJson& ordered,
                std::vector<ChatMessage>* messages) {
  std::string role;
  message->String("role", &role);
  if (role != "user" && role != "assistant") message->Refuse("role", "user or assistant");
  const Json* content = message->Find("content");
  BlocksOf read;
  const OrderedJson& blocks = ordered["content"];
  for (std::size_t i = 0; i < content->size() && message->ok(); ++i) {
    FieldReader block = message->Inner(fmt::format("content[{}]", i), (*content)[i]);
    ReadBlock(&block, blocks[i], &read);
  }
  std::ranges::move(read.results, std::back_inserter(*messages));
  if (role == "user" && read.text.empty()) return;
  ChatMessage turn{.role = role, .content = std::move(read.text)};
  if (!read.more.empty()) turn.more = Dump(read.more);
  messages->push_back(std::move(turn));
}

// The field `messages`; `ordered` is the body.
void ReadTurns(FieldReader* body, const OrderedJson& ordered, std::vector<ChatMessage>* messages) {
  const auto turns = ordered.find("messages");
  ForEachMessage(body, "messages", [&](FieldReader* message, std::size_t i) {
    const Json* content = message->Find("content");
    if (content != nullptr && HasBlocks(*content)) {
      return ReadBlocks(message, (*turns)[i], messages);
    }
    ReadTurn(message, {.types = kTextTypes, .more = {}}, &messages->emplace_back());
  });
  NameToolAnswers(messages);
}

// `tools`, which chat templates have in OpenAI's form.
void ReadAnthropicTools(FieldReader* body, const OrderedJson& ordered, ApiRequest* request) {
  const Json* tools = body->Find("tools");
  if (tools == nullptr || tools->empty()) return;
  if (!tools->is_array()) return body->Refuse("tools", "an array");
  const OrderedJson& listed = ordered["tools"];
  OrderedJson all = OrderedJson::array();
  for (std::size_t i = 0; i < tools->size() && body->ok(); ++i) {
    FieldReader fields = body->Inner(fmt::format("tools[{}]", i), (*tools)[i]);
    std::string type = "custom";
    std::string description;
    ChatTool tool;
    fields.String("type", &type);
    if (type != "custom") fields.Refuse("type", "custom: this server has no tools of its own");
    fields.String("name", &tool.name);
    fields.String("description", &description);
    fields.Bool("strict", &tool.strict);
    SkipFields(&fields, {"cache_control", "input_examples", "allowed_callers", "defer_loading",
                         "eager_input_streaming"});
    const Json* schema = fields.Find("input_schema");
    if (schema == nullptr || !schema->is_object()) {
      return fields.Refuse("input_schema", "a JSON Schema, an object");
    }
    OrderedJson function = {{"name", tool.name}};
    if (!description.empty()) function["description"] = description;
    function["parameters"] = listed[i]["input_schema"];
    tool.parameters = function["parameters"].dump();
    AddTool(std::move(tool), &fields, request);
    fields.Close();
    all.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  request->chat.tools = all.dump();
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
    CallOnly(name, &fields, request);
  } else if (type == "none") {
    request->tools.clear();
    request->chat.tools.clear();
  } else if (type == "any") {
    request->must_call = true;
    if (request->tools.empty()) fields.Fail("type", "'tool_choice' needs 'tools' to call");
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
    request->budget.tokens = 0;  // Of templates that know nothing of it, too.
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

// The chat: `messages` and, before them, `system`, and the tools that may be called in it.
void ReadChat(std::string_view body, FieldReader* fields, ApiRequest* request) {
  const OrderedJson ordered = ParseOrdered(body);
  std::string system;
  if (ReadText(fields, "system", kTextTypes, &system)) {
    request->chat.messages.push_back({"system", std::move(system)});
  }
  ReadTurns(fields, ordered, &request->chat.messages);
  if (fields->ok() && request->chat.messages.back().role == "assistant") {
    fields->Fail("messages",
                 "'messages' must not end with the assistant's turn: this server begins a turn of "
                 "its own");
  }
  ReadAnthropicTools(fields, ordered, request);
  MustBeEmpty(fields, "mcp_servers", "this server asks no others for tools");
  ReadAnthropicToolChoice(fields, request);
  ReadReasoningBudget(fields, request);
  ReadThinking(fields, request);
  ReadTemplateVariables(fields, request);
}

// `output_config`, whose `format` is a JSON Schema; its effort means nothing here.
void ReadOutputConfig(std::string_view body, FieldReader* fields, OutputFormat* format) {
  const Json* config = fields->Find("output_config");
  if (config == nullptr) return;
  FieldReader config_fields = fields->Inner("output_config", *config);
  std::string effort;
  config_fields.String("effort", &effort);
  if (const Json* wanted = config_fields.Find("format"); wanted != nullptr) {
    FieldReader format_fields = config_fields.Inner("format", *wanted);
    std::string type;
    format_fields.String("type", &type);
    if (type != "json_schema") format_fields.Refuse("type", "json_schema");
    if (!format->field.empty()) {
      fields->Fail("grammar", "'grammar' and 'output_config.format' contradict; give one of them");
    }
    constexpr std::string_view kPath[] = {"output_config", "format", "schema"};
    ReadSchemaField(body, kPath, &format_fields, format);
    format_fields.Close();
  }
  config_fields.Close();
}

Result<ApiRequest> Read(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    ReadChat(body, fields, request);
    constexpr int kMost = 1 << 30;
    if (!fields->Int("max_tokens", 1, kMost, &request->stop.max_tokens)) {
      fields->Refuse("max_tokens", "a number of tokens, from 1");
    }
    ReadSampling(fields, request);
    ReadStopStrings(fields, "stop_sequences", &request->stop);
    ReadStopTokens(fields, &request->stop);
    ReadOutputFormat(body, fields, &request->format);
    ReadOutputConfig(body, fields, &request->format);
    fields->Bool("stream", &request->stream);
    ReadSpeculation(fields, request);
    SkipFields(fields, {"metadata", "service_tier", "cache_control", "inference_geo", "speed",
                        "user_profile_id"});
  });
}

std::string_view ErrorType(int status) {
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

std::string Sentence(const ApiError& error) {
  if (!error.too_long.has_value()) return BoundedMessage(error);
  return fmt::format("prompt is too long: {} tokens > {} maximum", error.too_long->Count(),
                     error.too_long->most);
}

std::string ErrorBody(const ApiError& error) {
  return Dump({{"type", "error"},
               {"error", {{"type", ErrorType(error.status)}, {"message", Sentence(error)}}}});
}

}  // namespace

const Door& AnthropicDoor() {
  static constexpr Door kDoor = {.path = "/v1/messages",
                                 .id_prefix = "msg_",
                                 .prompt = "messages",
                                 .limit = "max_tokens",
                                 .read = Read,
                                 .writer = AnthropicWriter,
                                 .error = ErrorBody};
  return kDoor;
}

Result<ApiRequest> ReadCountTokens(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    ReadChat(body, fields, request);
    SkipFields(fields, {"output_config", "cache_control"});
  });
}

}  // namespace foretoken::server
