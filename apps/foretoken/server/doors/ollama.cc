#include "apps/foretoken/server/doors/doors.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <utility>

#include "apps/foretoken/server/api/chat_answer.h"
#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/api/tool_fields.h"
#include "foretoken/json_schema.h"
#include "json/json.h"

namespace foretoken::server {
namespace {

constexpr int kMaxPredict = 1 << 30;

void ReadOptions(FieldReader* body, ApiRequest* request) {
  const Json* options = body->Find("options");
  if (options == nullptr) return;
  FieldReader fields = body->Inner("options", *options);
  ReadLlamaSampling(&fields, request);
  int most = 0;  // -1, -2 and 0 are what the context holds.
  if (fields.Int("num_predict", -kMaxPredict, kMaxPredict, &most)) {
    request->stop.max_tokens = std::max(most, 0);
  }
  ReadStopStrings(&fields, "stop", &request->stop);
  ReadStopTokens(&fields, &request->stop);
  // How a model is to be loaded; the served one is.
  SkipFields(&fields, {"numa", "num_ctx", "num_batch", "num_gpu", "main_gpu", "low_vram", "f16_kv",
                       "use_mmap", "logits_all", "use_mlock", "num_keep", "embedding_only",
                       "num_thread", "vocab_only"});
  fields.Close();
}

// `format`: "json" or a JSON Schema.
void ReadFormat(std::string_view body, FieldReader* fields, OutputFormat* format) {
  ReadOutputFormat(body, fields, format);
  const Json* wanted = fields->Find("format");
  if (wanted == nullptr || *wanted == Json("")) return;
  if (!format->field.empty()) {
    return fields->Fail("format", "'format' contradicts another field; give one of them");
  }
  if (*wanted == Json("json")) {
    *format = {.grammar = JsonObjectGrammar(), .field = "format"};
  } else if (wanted->is_object()) {
    constexpr std::string_view kPath[] = {"format"};
    ReadSchemaField(body, kPath, fields, format);
  } else {
    fields->Refuse("format", "json or a JSON Schema, an object");
  }
}

// `think`: whether, or how much.
void ReadThink(FieldReader* fields, ApiRequest* request) {
  const Json* think = fields->Find("think");
  if (think == nullptr) return;
  if (think->is_boolean()) return SetReasoning(think->get<bool>() ? "medium" : "none", request);
  std::string effort;
  if (fields->String("think", &effort)) SetReasoning(effort, request);
}

void ReadOllamaCommon(std::string_view body, FieldReader* fields, ApiRequest* request) {
  request->stream = true;
  fields->Bool("stream", &request->stream);
  ReadOptions(fields, request);
  ReadFormat(body, fields, &request->format);
  bool logprobs = false;
  int top = 0;
  fields->Bool("logprobs", &logprobs);
  fields->Int("top_logprobs", 0, kMaxTopLogprobs, &top);
  request->sampling.top_logprobs = logprobs ? top : -1;
  ReadSpeculation(fields, request);
  ReadThink(fields, request);
  SkipFields(fields, {"keep_alive", "truncate", "shift"});
}

// An assistant's calls, whose arguments are objects; a tool's answer says whose it is by name.
void ReadMoreOfOllamaMessage(FieldReader* message, ChatMessage* turn) {
  MustBeEmpty(message, "images", "this server reads text only");
  Json more = Json::object();
  std::string text;
  if (message->String("tool_name", &text)) more["name"] = text;
  if (message->String("tool_call_id", &text)) more["tool_call_id"] = text;
  if (message->String("thinking", &text) && !text.empty()) more["reasoning_content"] = text;
  const Json* calls = message->Find("tool_calls");
  if (calls != nullptr && !calls->is_array()) message->Refuse("tool_calls", "an array of calls");
  for (std::size_t i = 0; calls != nullptr && i < calls->size() && message->ok(); ++i) {
    FieldReader call = message->Inner(fmt::format("tool_calls[{}]", i), (*calls)[i]);
    call.Has("type");
    call.Has("id");
    const Json* function = call.Find("function");
    if (function == nullptr)
      return call.Refuse("function", "an object with 'name' and 'arguments'");
    FieldReader inner = call.Inner("function", *function);
    inner.Has("index");
    if (!inner.String("name", &text)) inner.Refuse("name", "a string");
    const Json* arguments = inner.Find("arguments");
    if (arguments == nullptr || !arguments->is_object()) inner.Refuse("arguments", "an object");
    if (!inner.ok()) return;
    inner.Close();
    call.Close();
    more["tool_calls"].push_back(
        {{"type", "function"}, {"function", {{"name", text}, {"arguments", Json(*arguments)}}}});
  }
  if (!more.empty()) turn->more = Dump(more);
}

constexpr std::string_view kTextTypes[] = {"text"};

Result<ApiRequest> ReadOllamaChat(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    ReadMessages(fields, "messages",
                 {.types = kTextTypes, .tools = true, .more = ReadMoreOfOllamaMessage},
                 &request->chat.messages);
    ReadContinuation(fields, "messages", request);
    ReadTools(body, fields, request);
    ReadOllamaCommon(body, fields, request);
  });
}

// A prompt is a chat of one turn; with `suffix` what stands before a gap, and with `raw` a text
// that the model goes on with.
Result<ApiRequest> ReadGenerate(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    std::string prompt;
    std::string system;
    std::string suffix;
    bool raw = false;
    fields->String("prompt", &prompt);
    fields->String("suffix", &suffix);
    if (prompt.empty() && suffix.empty()) fields->Refuse("prompt", "a string that is not empty");
    fields->String("system", &system);
    fields->Bool("raw", &raw);
    if (raw || !suffix.empty()) {
      request->kind = ApiKind::kCompletion;
      if (!system.empty()) {
        fields->Refuse("system", "empty: with 'raw' or 'suffix' nothing goes before the prompt");
      }
    }
    if (!suffix.empty()) {
      request->prompts.emplace_back(ApiGap{.before = std::move(prompt), .behind = suffix});
    } else if (raw) {
      request->parse_special = true;
      request->prompts.emplace_back(std::move(prompt));
    } else {
      if (!system.empty()) request->chat.messages.push_back({"system", std::move(system)});
      request->chat.messages.push_back({"user", std::move(prompt)});
    }
    MustBeEmpty(fields, "template", "the model has a template of its own; 'raw' uses none");
    MustBeEmpty(fields, "context", "send the whole text as 'prompt', or use /api/chat");
    MustBeEmpty(fields, "images", "this server reads text only");
    ReadOllamaCommon(body, fields, request);
  });
}

class LineWriter final : public ReplyWriter {
 public:
  LineWriter(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer, bool chat)
      : request_(request), head_(std::move(head)), tokenizer_(tokenizer), chat_(chat) {}

  void Start(std::span<const std::string>, std::string*) override {}

  void Add(Burst burst, std::string* out) override {
    if (burst.ending.has_value()) ending_ = *burst.ending;
    std::string logprobs = "[]";
    if (request_.sampling.top_logprobs >= 0) logprobs = TokenLogprobs(*tokenizer_, burst.tokens);
    ChatAnswer more;
    if (request_.kind == ApiKind::kChat) {
      more.Add(WithWholeCalls(&burst));
    } else {
      more.content = std::move(burst.text);
    }
    if (!request_.stream) {
      answer_.Join(std::move(more));
      AppendElements(logprobs, &logprobs_);
    } else if (!more.empty() || logprobs != "[]") {
      AppendLine(Line(more, false), logprobs, out);
      *out += "\n";
    }
  }

  void End(std::string* out) override {
    const RequestStats& stats = ending_.stats;
    const std::span<const Ending> endings(&ending_, 1);
    Json line = Line(answer_, true);
    line["done_reason"] = FinishName(ending_.reason);
    line["total_duration"] = stats.finished_ns - stats.submitted_ns;
    line["load_duration"] = 0;
    line["prompt_eval_count"] = stats.prompt_tokens;
    line["prompt_eval_duration"] = stats.first_token_ns - stats.submitted_ns;
    line["eval_count"] = stats.output_tokens;
    line["eval_duration"] = stats.finished_ns - stats.first_token_ns;
    line["timings"] = TimingsJson(endings);
    line["speculation"] = SpeculationJson(endings, head_.seed);
    AppendLine(line, logprobs_, out);
    if (request_.stream) *out += "\n";
  }

  void Fail(const ApiError& error, std::string* out) const override {
    *out += OllamaChatDoor().error(error) + "\n";
  }

 private:
  // The burst's parts, but of the latest call only what makes it whole: calls do not come in
  // pieces.
  std::vector<ChatPart> WithWholeCalls(Burst* burst) {
    std::vector<ChatPart> whole;
    const auto end_call = [&] {
      whole.insert(whole.end(), call_.begin(), call_.end());
      call_.clear();
    };
    for (ChatPart& part : burst->parts) {
      const bool of_call = part.kind == ChatPart::Kind::kArguments && !call_.empty();
      if (of_call) {
        call_.push_back(std::move(part));
        continue;
      }
      end_call();
      (part.kind == ChatPart::Kind::kCall ? call_ : whole).push_back(std::move(part));
    }
    if (burst->ending.has_value()) end_call();
    return whole;
  }

  static Json CallsJson(const ChatAnswer& answer) {
    Json calls = Json::array();
    for (const ChatAnswer::Call& call : answer.calls) {
      Json arguments = Json::Parse(call.arguments);
      if (!arguments.is_object()) arguments = Json::object();  // Cut off.
      calls.push_back({{"function", {{"name", call.name}, {"arguments", std::move(arguments)}}}});
    }
    return calls;
  }

  static void AppendLine(const Json& line, std::string_view logprobs, std::string* out) {
    std::string text = Dump(line);
    if (logprobs != "[]") AppendMember("logprobs", logprobs, &text);
    *out += text;
  }

  Json Line(const ChatAnswer& answer, bool done) const {
    Json line = {{"model", head_.model}, {"created_at", OllamaTime(head_.created)}};
    if (chat_) {
      Json& message = line["message"] = {{"role", "assistant"}, {"content", answer.content}};
      if (!answer.reasoning.empty()) message["thinking"] = answer.reasoning;
      if (!answer.calls.empty()) message["tool_calls"] = CallsJson(answer);
    } else {
      line["response"] = answer.content;
      if (!answer.reasoning.empty()) line["thinking"] = answer.reasoning;
    }
    line["done"] = done;
    return line;
  }

  const ApiRequest& request_;
  const ReplyHead head_;
  const Tokenizer* const tokenizer_;
  const bool chat_;
  ChatAnswer answer_;           // For a reply that does not stream.
  std::vector<ChatPart> call_;  // The call that is not yet whole.
  std::string logprobs_ = "[]";
  Ending ending_;
};

template <bool chat>
std::unique_ptr<ReplyWriter> OllamaWriter(const ApiRequest& request, ReplyHead head,
                                          const Tokenizer* tokenizer) {
  return std::make_unique<LineWriter>(request, std::move(head), tokenizer, chat);
}

// A prompt that is too long is said in Ollama's words.
std::string OllamaSentence(const ApiError& error) {
  if (!error.too_long.has_value()) return BoundedMessage(error);
  const PromptTooLong& prompt = *error.too_long;
  return fmt::format(
      "prompt too long; exceeded max context length by {} tokens: it has {}, and {} are allowed",
      prompt.tokens - prompt.most, prompt.Count(), prompt.most);
}

std::string OllamaErrorBody(const ApiError& error) {
  return Dump({{"error", OllamaSentence(error)}});
}

}  // namespace

const Door& OllamaChatDoor() {
  static constexpr Door kDoor = {.path = "/api/chat",
                                 .id_prefix = "",
                                 .prompt = "messages",
                                 .limit = "options.num_predict",
                                 .read = ReadOllamaChat,
                                 .writer = OllamaWriter<true>,
                                 .error = OllamaErrorBody,
                                 .stream_type = "application/x-ndjson"};
  return kDoor;
}

const Door& OllamaGenerateDoor() {
  static constexpr Door kDoor = {.path = "/api/generate",
                                 .id_prefix = "",
                                 .prompt = "prompt",
                                 .limit = "options.num_predict",
                                 .read = ReadGenerate,
                                 .writer = OllamaWriter<false>,
                                 .error = OllamaErrorBody,
                                 .stream_type = "application/x-ndjson"};
  return kDoor;
}

std::string_view WithoutTag(std::string_view model) {
  constexpr std::string_view kTag = ":latest";
  return model.ends_with(kTag) ? model.substr(0, model.size() - kTag.size()) : model;
}

std::string OllamaTime(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace foretoken::server
