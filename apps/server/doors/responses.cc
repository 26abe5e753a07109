#include "server/doors/responses.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "foretoken/json_schema.h"
#include "server/api/request_fields.h"

namespace foretoken::server {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTextTypes[] = {"input_text", "output_text", "text"};

// What an item of the input may have besides role and content: this server's outputs can be sent
// back as they are.
void ReadMoreOfItem(FieldReader* item) {
  std::string type = "message";
  item->String("type", &type);
  if (type != "message") item->Refuse("type", "message: this server has no other items");
  SkipFields(item, {"id", "status", "phase"});
}

void ReadInput(FieldReader* body, ApiRequest* request) {
  std::string text;
  if (body->String("instructions", &text)) {
    request->repeated["instructions"] = text;
    request->chat.messages.push_back({"system", std::move(text)});
  }
  const Json* input = body->Find("input");
  if (input == nullptr) return body->Refuse("input", "a string or an array of messages");
  if (input->is_string()) {
    request->chat.messages.push_back({"user", input->get<std::string>()});
  } else {
    ReadMessages(body, "input", kTextTypes, ReadMoreOfItem, &request->chat.messages);
  }
}

// `text`: the output's format.
void ReadTextOptions(std::string_view body, FieldReader* fields, ApiRequest* request) {
  const Json* text = fields->Find("text");
  if (text == nullptr) return;
  FieldReader options = fields->Inner("text", *text);
  std::string word;
  options.String("verbosity", &word);
  if (const Json* format = options.Find("format"); format != nullptr) {
    FieldReader inner = options.Inner("format", *format);
    std::string type;
    inner.String("type", &type);
    if (type != "text" && type != "json_object" && type != "json_schema") {
      inner.Refuse("type", "text, json_object or json_schema");
    } else if (type != "text" && !request->format.field.empty()) {
      fields->Fail("grammar", "'grammar' and 'text.format' contradict; give one of them");
    }
    if (type == "json_object") {
      request->format = {.grammar = JsonObjectGrammar(), .field = "text.format"};
    } else if (type == "json_schema") {
      constexpr std::string_view kPath[] = {"text", "format", "schema"};
      ReadNamedSchema(body, kPath, &inner, &request->format);
    }
    inner.Close();
    request->repeated["format"] = *format;
  }
  options.Close();
}

// `include` says whether log-probabilities are wanted, `top_logprobs` how many others there are.
void ReadLogprobs(FieldReader* body, SamplingParams* sampling) {
  int top = 0;
  bool wanted = body->Int("top_logprobs", 0, kMaxTopLogprobs, &top) && top > 0;
  if (const Json* include = body->Find("include"); include != nullptr) {
    if (!include->is_array()) return body->Refuse("include", "an array of strings");
    for (const Json& item : *include) wanted = wanted || item == "message.output_text.logprobs";
  }
  sampling->top_logprobs = wanted ? top : -1;
}

// What asks for state that this server does not keep, or for what it does not do.
void RefuseUnserved(FieldReader* body) {
  constexpr std::string_view kKeepsNothing =
      "this server stores no responses; send the whole conversation in 'input'";
  for (const char* name : {"previous_response_id", "conversation", "prompt"}) {
    MustBeEmpty(body, name, kKeepsNothing);
  }
  MustBeEmpty(body, "background", "this server answers requests while they wait");
  MustBeEmpty(body, "tools", "this server calls no tools");
  if (const Json* choice = body->Find("tool_choice");
      choice != nullptr && *choice != Json("none") && *choice != Json("auto")) {
    body->Refuse("tool_choice", "none or auto: this server calls no tools");
  }
  if (const Json* truncation = body->Find("truncation");
      truncation != nullptr && *truncation != Json("disabled")) {
    body->Refuse("truncation", "disabled: this server leaves no message out");
  }
}

void ReadHarmless(FieldReader* body, Json* repeated) {
  bool flag = false;
  body->Bool("store", &flag);  // It is not, and the reply says so.
  body->Bool("parallel_tool_calls", &flag);
  if (const Json* metadata = body->Find("metadata"); metadata != nullptr) {
    if (!metadata->is_object()) body->Refuse("metadata", "an object");
    (*repeated)["metadata"] = *metadata;
  }
  if (const Json* options = body->Find("stream_options"); options != nullptr) {
    FieldReader fields = body->Inner("stream_options", *options);
    fields.Bool("include_obfuscation", &flag);
    fields.Close();
  }
  SkipFields(body, {"user", "safety_identifier", "service_tier", "prompt_cache_key", "reasoning",
                    "prompt_cache_retention", "prompt_cache_options", "max_tool_calls"});
}

Result<ApiRequest> Read(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [body](FieldReader* fields, ApiRequest* request) {
    request->repeated = Json::object();
    ReadInput(fields, request);
    ReadMaxTokens(fields, "max_output_tokens", &request->stop.max_tokens);
    ReadSampling(fields, request);
    ReadLogprobs(fields, &request->sampling);
    ReadStopStrings(fields, "stop", &request->stop);
    ReadStopTokens(fields, &request->stop);
    ReadOutputFormat(body, fields, &request->format);
    ReadTextOptions(body, fields, request);
    fields->Bool("stream", &request->stream);
    ReadSpeculation(fields, request);
    RefuseUnserved(fields);
    ReadHarmless(fields, &request->repeated);
  });
}

class ResponseWriter final : public ReplyWriter {
 public:
  ResponseWriter(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer)
      : request_(request),
        head_(std::move(head)),
        item_id_("msg_" + head_.id.substr(ResponsesDoor().id_prefix.size())),
        tokenizer_(tokenizer) {}

  void Start(std::span<const std::string>, std::string* out) override {
    if (!request_.stream) return;
    AppendResponse("response.created", Response("in_progress"), out);
    AppendResponse("response.in_progress", Response("in_progress"), out);
    Append("response.output_item.added",
           {{"output_index", 0}, {"item", Item("in_progress", OrderedJson::array())}}, out);
    Append("response.content_part.added", OfText("part", Part("", OrderedJson::array())), out);
  }

  void Add(Burst burst, std::string* out) override {
    if (burst.ending.has_value()) ending_ = *burst.ending;
    OrderedJson logprobs = OrderedJson::array();
    if (request_.sampling.top_logprobs >= 0) logprobs = TokenLogprobs(*tokenizer_, burst.tokens);
    logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
    text_ += burst.text;
    if (!request_.stream || (burst.text.empty() && logprobs.empty())) return;
    OrderedJson event = OfText("delta", std::move(burst.text));
    event["logprobs"] = std::move(logprobs);
    Append("response.output_text.delta", std::move(event), out);
  }

  void End(std::string* out) override {
    const bool limited = FinishName(ending_.reason) == "length";
    const std::string_view status = limited ? "incomplete" : "completed";
    const OrderedJson part = Part(text_, logprobs_);
    const OrderedJson item = Item(status, OrderedJson::array({part}));
    OrderedJson response = Response(status);
    if (limited) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (!limited) response["completed_at"] = std::time(nullptr);
    response["output"] = OrderedJson::array({item});
    response["usage"] = Usage();
    response["timings"] = TimingsJson(std::span(&ending_, 1));
    response["speculation"] = SpeculationJson(std::span(&ending_, 1), head_.seed);
    if (!request_.stream) {
      *out += Dump(response);
      return;
    }
    OrderedJson done = OfText("text", text_);
    done["logprobs"] = logprobs_;
    Append("response.output_text.done", std::move(done), out);
    Append("response.content_part.done", OfText("part", part), out);
    Append("response.output_item.done", {{"output_index", 0}, {"item", item}}, out);
    AppendResponse(limited ? "response.incomplete" : "response.completed", std::move(response),
                   out);
  }

  void Fail(const ApiError& error, std::string* out) const override {
    OrderedJson response = Response("failed");
    response["error"] = {{"code", "server_error"}, {"message", BoundedMessage(error)}};
    AppendEvent("response.failed",
                {{"type", "response.failed"},
                 {"sequence_number", events_},
                 {"response", std::move(response)}},
                out);
  }

 private:
  void Append(std::string_view type, OrderedJson more, std::string* out) {
    OrderedJson event = {{"type", type}, {"sequence_number", events_++}};
    event.update(more);
    AppendEvent(type, event, out);
  }
  void AppendResponse(std::string_view type, OrderedJson response, std::string* out) {
    Append(type, OrderedJson::object({{"response", std::move(response)}}), out);
  }

  // The members of an event about the one text of the one item, with a `value`.
  OrderedJson OfText(std::string_view name, OrderedJson value) const {
    OrderedJson event = {{"item_id", item_id_}, {"output_index", 0}, {"content_index", 0}};
    event[std::string(name)] = std::move(value);
    return event;
  }

  static OrderedJson Part(const std::string& text, const OrderedJson& logprobs) {
    return {{"type", "output_text"},
            {"annotations", OrderedJson::array()},
            {"logprobs", logprobs},
            {"text", text}};
  }

  OrderedJson Item(std::string_view status, const OrderedJson& content) const {
    return {{"id", item_id_},
            {"type", "message"},
            {"status", status},
            {"role", "assistant"},
            {"content", content}};
  }

  OrderedJson Usage() const {
    const RequestStats& stats = ending_.stats;
    return {{"input_tokens", stats.prompt_tokens},
            {"input_tokens_details",
             {{"cached_tokens", stats.cached_prompt_tokens}, {"cache_write_tokens", 0}}},
            {"output_tokens", stats.output_tokens},
            {"output_tokens_details", {{"reasoning_tokens", 0}}},
            {"total_tokens", stats.prompt_tokens + stats.output_tokens}};
  }

  // The response as far as it is known without its output.
  OrderedJson Response(std::string_view status) const {
    const Json& repeated = request_.repeated;
    const auto again = [&repeated](const char* name, Json otherwise) {
      return OrderedJson(repeated.value(name, std::move(otherwise)));
    };
    const int most = request_.stop.max_tokens;
    return {{"id", head_.id},
            {"object", "response"},
            {"created_at", head_.created},
            {"status", status},
            {"background", false},
            {"error", nullptr},
            {"incomplete_details", nullptr},
            {"instructions", again("instructions", nullptr)},
            {"max_output_tokens", most == 0 ? OrderedJson(nullptr) : OrderedJson(most)},
            {"model", head_.model},
            {"output", OrderedJson::array()},
            {"parallel_tool_calls", true},
            {"previous_response_id", nullptr},
            {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
            {"store", false},
            {"temperature", ShortestNumber(request_.sampling.temperature)},
            {"text", {{"format", again("format", {{"type", "text"}})}}},
            {"tool_choice", "auto"},
            {"tools", OrderedJson::array()},
            {"top_logprobs", std::max(0, request_.sampling.top_logprobs)},
            {"top_p", ShortestNumber(request_.sampling.top_p)},
            {"truncation", "disabled"},
            {"usage", nullptr},
            {"user", nullptr},
            {"metadata", again("metadata", Json::object())}};
  }

  const ApiRequest& request_;
  const ReplyHead head_;
  const std::string item_id_;
  const Tokenizer* const tokenizer_;
  std::string text_;
  OrderedJson logprobs_ = OrderedJson::array();
  Ending ending_;
  int events_ = 0;
};

std::unique_ptr<ReplyWriter> Writer(const ApiRequest& request, ReplyHead head,
                                    const Tokenizer* tokenizer) {
  return std::make_unique<ResponseWriter>(request, std::move(head), tokenizer);
}

}  // namespace

const Door& ResponsesDoor() {
  static constexpr Door kDoor = {.path = "/v1/responses",
                                 .id_prefix = "resp_",
                                 .prompt = "input",
                                 .limit = "max_output_tokens",
                                 .read = Read,
                                 .writer = Writer,
                                 .error = ErrorJson};
  return kDoor;
}

}  // namespace foretoken::server
