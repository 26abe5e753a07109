#include "apps/foretoken/server/doors/doors.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "apps/foretoken/server/api/tool_fields.h"

namespace foretoken::server {
namespace {

// The text that a tool takes, of the arguments of the function that a model calls in its place;
// empty where they were cut off.
std::string InputOf(const std::string& arguments) {
  const Json json = Json::Parse(arguments);
  const auto input = json.is_object() ? json.find("input") : json.end();
  return input != json.end() && input->is_string() ? input->get<std::string>() : std::string();
}

constexpr std::string_view kNone = "[]";

class ResponseWriter final : public ReplyWriter {
 public:
  ResponseWriter(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer)
      : request_(request),
        head_(std::move(head)),
        suffix_(head_.id.substr(ResponsesDoor().id_prefix.size())),
        tokenizer_(tokenizer) {}

  void Start(std::span<const std::string>, std::string* out) override {
    if (!request_.stream) return;
    AppendResponse("response.created", Response("in_progress"), out);
    AppendResponse("response.in_progress", Response("in_progress"), out);
  }

  void Add(Burst burst, std::string* out) override {
    if (burst.ending.has_value()) ending_ = *burst.ending;
    std::string logprobs(kNone);
    if (request_.sampling.top_logprobs >= 0) logprobs = TokenLogprobs(*tokenizer_, burst.tokens);
    const bool says =
        std::ranges::count(burst.parts, ChatPart::Kind::kContent, &ChatPart::kind) > 0;
    // Tokens may come before the text that they are part of.
    if (burst.parts.empty() && logprobs != kNone) {
      burst.parts.push_back({ChatPart::Kind::kContent, ""});
    } else if (!says) {
      logprobs = kNone;
    }
    for (ChatPart& part : burst.parts) {
      const bool begins =
          part.kind == ChatPart::Kind::kCall || (part.kind != ChatPart::Kind::kArguments &&
                                                 (!open_.has_value() || open_->kind != part.kind));
      if (begins) {
        CloseItem("completed", out);
        OpenItem(part, out);
      }
      if (part.kind == ChatPart::Kind::kCall) continue;
      const bool content = part.kind == ChatPart::Kind::kContent;
      AppendDelta(std::move(part.text),
                  content ? std::exchange(logprobs, std::string(kNone)) : std::string(kNone), out);
    }
  }

  void End(std::string* out) override {
    const bool limited = FinishName(ending_.reason) == "length";
    const std::string_view status = limited ? "incomplete" : "completed";
    if (output_.empty() && !open_.has_value()) OpenItem({ChatPart::Kind::kContent, ""}, out);
    CloseItem(status, out);
    Json response = Response(status);
    if (limited) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (!limited) response["completed_at"] = std::time(nullptr);
    response.erase("output");
    response["usage"] = Usage();
    response["timings"] = TimingsJson(std::span(&ending_, 1));
    response["speculation"] = SpeculationJson(std::span(&ending_, 1), head_.seed);
    std::string text = Dump(response);
    AppendMember("output", output_text_, &text);
    if (head_.keep) head_.keep({text, TurnsOfOutput(output_), ItemsOfOutput()});
    if (!request_.stream) {
      *out += text;
      return;
    }
    Append(limited ? "response.incomplete" : "response.completed", Json::object(), out,
           {"response", text});
  }

  void Fail(const ApiError& error, std::string* out) const override {
    Json response = Response("failed");
    response["error"] = {{"code", "server_error"}, {"message", BoundedMessage(error)}};
    AppendEvent("response.failed",
                {{"type", "response.failed"},
                 {"sequence_number", events_},
                 {"response", std::move(response)}},
                out);
  }

 private:
  // A part of the output that is being written.
  struct OpenItemState {
    ChatPart::Kind kind = ChatPart::Kind::kContent;
    std::string id;
    ToolShape shape;   // A call's function, as the client knows it.
    int call = 0;      // Which of the calls it is.
    std::string text;  // The arguments of a tool that takes a text, as long as it is open.
    std::string logprobs = std::string(kNone);  // As JSON: there may be very many.
  };
  // A member of an object that is JSON text already.
  struct TextMember {
    std::string_view name;
    std::string_view text;
  };

  // Events are for those who asked for a stream.
  void Append(std::string_view type, const Json& more, std::string* out, TextMember last = {}) {
    if (!request_.stream) return;
    Json event = {{"type", type}, {"sequence_number", events_++}};
    event.update(more);
    std::string text = Dump(event);
    if (!last.name.empty()) AppendMember(last.name, last.text, &text);
    AppendEventText(type, text, out);
  }
  void AppendResponse(std::string_view type, Json response, std::string* out) {
    Append(type, Json::object({{"response", std::move(response)}}), out);
  }

  // The members of an event about the open item, and with a `value`.
  Json OfItem() const {
    Json event = {{"item_id", open_->id}, {"output_index", output_.size()}};
    if (open_->kind != ChatPart::Kind::kCall) event["content_index"] = 0;
    return event;
  }
  Json OfItem(std::string_view name, Json value) const {
    Json event = OfItem();
    event[std::string(name)] = std::move(value);
    return event;
  }

  void OpenItem(const ChatPart& part, std::string* out) {
    open_ = OpenItemState{};
    open_->kind = part.kind;
    const bool called = part.kind == ChatPart::Kind::kCall;
    if (called) {
      const auto shape = request_.shapes.find(part.text);
      open_->shape = shape == request_.shapes.end() ? ToolShape{.name = part.text} : shape->second;
      open_->call = calls_++;
    }
    const std::string_view prefix = open_->shape.custom                       ? "ctc"
                                    : called                                  ? "fc"
                                    : part.kind == ChatPart::Kind::kReasoning ? "rs"
                                                                              : "msg";
    open_->id = fmt::format("{}_{}", prefix, suffix_);
    if (!output_.empty()) open_->id += fmt::format("_{}", output_.size());
    const std::string item = WithContent(Item("in_progress"), kNone);
    Append("response.output_item.added", {{"output_index", output_.size()}}, out, {"item", item});
    if (!called) Append("response.content_part.added", OfItem(), out, {"part", PartText()});
  }

  void AppendDelta(std::string text, const std::string& logprobs, std::string* out) {
    open_->text += text;
    if (open_->shape.custom) return;  // The text is in its arguments, whole when they are.
    AppendElements(logprobs, &open_->logprobs);
    const bool content = open_->kind == ChatPart::Kind::kContent;
    Append(fmt::format("response.{}.delta", TextName()), OfItem("delta", std::move(text)), out,
           content ? TextMember{"logprobs", logprobs} : TextMember{});
  }

  void CloseItem(std::string_view status, std::string* out) {
    if (!open_.has_value()) return;
    const bool called = open_->kind == ChatPart::Kind::kCall;
    if (open_->shape.custom) {
      open_->text = InputOf(open_->text);
      Append("response.custom_tool_call_input.delta", OfItem("delta", open_->text), out);
    }
    Json done = OfItem(open_->shape.custom ? "input" : called ? "arguments" : "text", open_->text);
    if (called && !open_->shape.custom) done["name"] = open_->shape.name;
    const bool content = open_->kind == ChatPart::Kind::kContent;
    Append(fmt::format("response.{}.done", TextName()), done, out,
           content ? TextMember{"logprobs", open_->logprobs} : TextMember{});
    const std::string part = PartText();
    if (!called) Append("response.content_part.done", OfItem(), out, {"part", part});
    Json item = Item(status);
    const std::string text = WithContent(item, "[" + part + "]");
    Append("response.output_item.done", {{"output_index", output_.size()}}, out, {"item", text});
    AppendElements("[" + text + "]", &output_text_);
    if (!called) item["content"] = Json::array({Part()});
    output_.push_back(std::move(item));
    open_.reset();
  }

  std::map<std::string, std::string> ItemsOfOutput() const {
    std::map<std::string, std::string> items;
    for (const Json& item : output_) items[item["id"].get<std::string>()] = Dump(item);
    return items;
  }

  // What events call the open item's text.
  std::string_view TextName() const {
    switch (open_->kind) {
      case ChatPart::Kind::kContent:
        return "output_text";
      case ChatPart::Kind::kReasoning:
        return "reasoning_text";
      default:
        return open_->shape.custom ? "custom_tool_call_input" : "function_call_arguments";
    }
  }

  // The open item's content, but for its log-probabilities.
  Json Part() const {
    if (open_->kind == ChatPart::Kind::kReasoning) {
      return {{"type", "reasoning_text"}, {"text", open_->text}};
    }
    return {{"type", "output_text"}, {"annotations", Json::array()}, {"text", open_->text}};
  }
  std::string PartText() const {
    std::string text = Dump(Part());
    if (open_->kind == ChatPart::Kind::kContent) AppendMember("logprobs", open_->logprobs, &text);
    return text;
  }

  // An item with its content, an array; calls have none.
  std::string WithContent(const Json& item, std::string_view content) const {
    std::string text = Dump(item);
    if (open_->kind != ChatPart::Kind::kCall) AppendMember("content", content, &text);
    return text;
  }

  // The open item without its content.
  Json Item(std::string_view status) const {
    Json item = {{"id", open_->id}, {"type", "message"}, {"status", status}};
    switch (open_->kind) {
      case ChatPart::Kind::kContent:
        item["role"] = "assistant";
        break;
      case ChatPart::Kind::kReasoning:
        item["type"] = "reasoning";
        item["summary"] = Json::array();
        break;
      default:
        item["type"] = open_->shape.custom ? "custom_tool_call" : "function_call";
        item["call_id"] = CallId(head_.id, 0, open_->call);
        if (!open_->shape.space.empty()) item["namespace"] = open_->shape.space;
        item["name"] = open_->shape.name;
        item[open_->shape.custom ? "input" : "arguments"] = open_->text;
    }
    return item;
  }

  Json Usage() const {
    const RequestStats& stats = ending_.stats;
    return {{"input_tokens", stats.prompt_tokens},
            {"input_tokens_details",
             {{"cached_tokens", stats.cached_prompt_tokens}, {"cache_write_tokens", 0}}},
            {"output_tokens", stats.output_tokens},
            {"output_tokens_details", {{"reasoning_tokens", 0}}},
            {"total_tokens", stats.prompt_tokens + stats.output_tokens}};
  }

  // The response as far as it is known without its output.
  Json Response(std::string_view status) const {
    const Json& repeated = request_.repeated;
    const auto again = [&repeated](const char* name, Json otherwise) {
      return Json(repeated.value(name, std::move(otherwise)));
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
            {"max_output_tokens", most == 0 ? Json(nullptr) : Json(most)},
            {"model", head_.model},
            {"output", Json::array()},
            {"parallel_tool_calls", !request_.one_call},
            {"previous_response_id",
             request_.keep.previous.empty() ? Json(nullptr) : Json(request_.keep.previous)},
            {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
            {"store", request_.keep.store},
            {"temperature", ShortestNumber(request_.sampling.temperature)},
            {"text", {{"format", again("format", {{"type", "text"}})}}},
            {"tool_choice", again("tool_choice", "auto")},
            {"tools", again("tools", Json::array())},
            {"top_logprobs", std::max(0, request_.sampling.top_logprobs)},
            {"top_p", ShortestNumber(request_.sampling.top_p)},
            {"truncation", "disabled"},
            {"usage", nullptr},
            {"user", nullptr},
            {"metadata", again("metadata", Json::object())}};
  }

  const ApiRequest& request_;
  const ReplyHead head_;
  const std::string suffix_;  // The end of items' ids.
  const Tokenizer* const tokenizer_;
  // Items that are whole, and their text: with log-probabilities, which only that has.
  Json output_ = Json::array();
  std::string output_text_ = std::string(kNone);
  std::optional<OpenItemState> open_;
  int calls_ = 0;
  Ending ending_;
  int events_ = 0;
};

}  // namespace

std::unique_ptr<ReplyWriter> ResponseItemsWriter(const ApiRequest& request, ReplyHead head,
                                                 const Tokenizer* tokenizer) {
  return std::make_unique<ResponseWriter>(request, std::move(head), tokenizer);
}

}  // namespace foretoken::server
