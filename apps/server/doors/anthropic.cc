#include "server/doors/anthropic.h"

#include <utility>

#include "server/api/request_fields.h"

namespace foretoken::server {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTextTypes[] = {"text"};

// The chat: `messages` and, before them, `system`.
void ReadChat(FieldReader* body, ApiRequest* request) {
  std::string system;
  if (ReadText(body, "system", kTextTypes, &system)) {
    request->chat.messages.push_back({"system", std::move(system)});
  }
  ReadMessages(
      body, "messages", kTextTypes, [](FieldReader*) {}, &request->chat.messages);
  if (body->ok() && request->chat.messages.back().role == "assistant") {
    body->Fail("messages",
               "'messages' must not end with the assistant's turn: this server begins a turn of "
               "its own");
  }
  MustBeEmpty(body, "tools", "this server calls no tools");
  MustBeEmpty(body, "mcp_servers", "this server calls no tools");
  if (const Json* choice = body->Find("tool_choice"); choice != nullptr) {
    FieldReader fields = body->Inner("tool_choice", *choice);
    std::string type;
    bool flag = false;
    fields.String("type", &type);
    fields.Bool("disable_parallel_tool_use", &flag);
    if (type != "auto" && type != "none") fields.Refuse("type", "auto or none");
    fields.Close();
  }
  if (const Json* thinking = body->Find("thinking"); thinking != nullptr) {
    FieldReader fields = body->Inner("thinking", *thinking);
    std::string type;
    fields.String("type", &type);
    fields.Has("display");
    if (type != "disabled" && type != "adaptive") {
      fields.Refuse("type", "disabled or adaptive: this server's model does not think apart");
    }
    fields.Close();
  }
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
    ReadChat(fields, request);
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

std::string_view StopReason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopString:
      return "stop_sequence";
    case FinishReason::kMaxTokens:
    case FinishReason::kGrammarStuck:
      return "max_tokens";
    case FinishReason::kContextFull:
      return "model_context_window_exceeded";
    default:
      return "end_turn";
  }
}

// Tokens found in the prefix cache are counted apart from the input's others.
OrderedJson Usage(int prompt_tokens, int cached, int output_tokens) {
  return {{"input_tokens", prompt_tokens - cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached},
          {"output_tokens", output_tokens}};
}

class MessageWriter final : public ReplyWriter {
 public:
  MessageWriter(const ApiRequest& request, ReplyHead head)
      : request_(request), head_(std::move(head)) {}

  void Start(std::span<const std::string>, std::string* out) override {
    if (!request_.stream) return;
    OrderedJson message = Message();
    message["content"] = OrderedJson::array();
    message["usage"] = Usage(head_.prompt_tokens, 0, 0);
    AppendEvent("message_start", {{"type", "message_start"}, {"message", std::move(message)}}, out);
    AppendEvent("content_block_start",
                {{"type", "content_block_start"},
                 {"index", 0},
                 {"content_block", {{"type", "text"}, {"text", ""}, {"citations", nullptr}}}},
                out);
  }

  void Add(Burst burst, std::string* out) override {
    if (burst.ending.has_value()) ending_ = *burst.ending;
    if (!request_.stream) {
      text_ += burst.text;
    } else if (!burst.text.empty()) {
      AppendEvent("content_block_delta",
                  {{"type", "content_block_delta"},
                   {"index", 0},
                   {"delta", {{"type", "text_delta"}, {"text", std::move(burst.text)}}}},
                  out);
    }
  }

  void End(std::string* out) override {
    const RequestStats& stats = ending_.stats;
    const std::span<const Ending> endings(&ending_, 1);
    OrderedJson end = {{"stop_reason", StopReason(ending_.reason)}, {"stop_sequence", nullptr}};
    if (stats.stop_string >= 0) {
      end["stop_sequence"] =
          request_.stop.stop_strings[static_cast<std::size_t>(stats.stop_string)];
    }
    OrderedJson last;
    if (request_.stream) {
      last["type"] = "message_delta";
      last["delta"] = std::move(end);
    } else {
      last = Message();
      last["content"] = OrderedJson::array(
          {{{"type", "text"}, {"text", std::move(text_)}, {"citations", nullptr}}});
      last.update(end);
    }
    last["usage"] = Usage(stats.prompt_tokens, stats.cached_prompt_tokens, stats.output_tokens);
    last["timings"] = TimingsJson(endings);
    last["speculation"] = SpeculationJson(endings, head_.seed);
    if (!request_.stream) {
      *out += Dump(last);
      return;
    }
    AppendEvent("content_block_stop", {{"type", "content_block_stop"}, {"index", 0}}, out);
    AppendEvent("message_delta", last, out);
    AppendEvent("message_stop", {{"type", "message_stop"}}, out);
  }

  void Fail(const ApiError& error, std::string* out) const override {
    *out += "event: error\ndata: " + AnthropicDoor().error(error) + "\n\n";
  }

 private:
  // What is known of it before its first token.
  OrderedJson Message() const {
    return {{"id", head_.id},          {"type", "message"},  {"role", "assistant"},
            {"model", head_.model},    {"content", nullptr}, {"stop_reason", nullptr},
            {"stop_sequence", nullptr}};
  }

  const ApiRequest& request_;
  const ReplyHead head_;
  std::string text_;
  Ending ending_;
};

std::unique_ptr<ReplyWriter> Writer(const ApiRequest& request, ReplyHead head, const Tokenizer*) {
  return std::make_unique<MessageWriter>(request, std::move(head));
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

std::string ErrorBody(const ApiError& error) {
  return Dump({{"type", "error"},
               {"error", {{"type", ErrorType(error.status)}, {"message", BoundedMessage(error)}}}});
}

}  // namespace

const Door& AnthropicDoor() {
  static constexpr Door kDoor = {.path = "/v1/messages",
                                 .id_prefix = "msg_",
                                 .prompt = "messages",
                                 .limit = "max_tokens",
                                 .read = Read,
                                 .writer = Writer,
                                 .error = ErrorBody};
  return kDoor;
}

Result<ApiRequest> ReadCountTokens(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [](FieldReader* fields, ApiRequest* request) {
    ReadChat(fields, request);
    SkipFields(fields, {"output_config", "cache_control"});
  });
}

}  // namespace foretoken::server
