#include "apps/foretoken/server/doors/doors.h"
#include "base/numbers/integers.h"

#include <utility>

#include "apps/foretoken/server/api/chat_answer.h"
#include "apps/foretoken/server/api/tool_fields.h"
#include "json/json.h"

namespace foretoken::server {
namespace {

std::string_view StopReason(FinishReason reason, bool has_calls) {
  if (has_calls && FinishName(reason) == "stop") return "tool_use";
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
Json Usage(int prompt_tokens, int cached, int output_tokens) {
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
    Json message = Message();
    message["content"] = Json::array();
    message["usage"] = Usage(head_.prompt_tokens, 0, 0);
    AppendEvent("message_start", {{"type", "message_start"}, {"message", std::move(message)}}, out);
  }

  void Add(Burst burst, std::string* out) override {
    if (burst.ending.has_value()) ending_ = *burst.ending;
    answer_.Add(burst.parts);
    if (!request_.stream) return;
    for (const ChatPart& part : burst.parts) AppendPart(part, out);
  }

  void End(std::string* out) override {
    const RequestStats& stats = ending_.stats;
    const std::span<const Ending> endings(&ending_, 1);
    Json end = {{"stop_reason", StopReason(ending_.reason, !answer_.calls.empty())},
                {"stop_sequence", nullptr}};
    if (stats.stop_string >= 0) {
      end["stop_sequence"] = request_.stop.stop_strings[stats.stop_string];
    }
    Json last;
    if (request_.stream) {
      last["type"] = "message_delta";
      last["delta"] = std::move(end);
    } else {
      last = Message();
      last["content"] = Content();
      last.update(end);
    }
    last["usage"] = Usage(stats.prompt_tokens, stats.cached_prompt_tokens, stats.output_tokens);
    last["timings"] = TimingsJson(endings);
    last["speculation"] = SpeculationJson(endings, head_.seed);
    if (!request_.stream) {
      *out += Dump(last);
      return;
    }
    if (blocks_ == 0) OpenBlock(TextBlock(""), out);  // Nothing was said.
    CloseBlock(out);
    AppendEvent("message_delta", last, out);
    AppendEvent("message_stop", {{"type", "message_stop"}}, out);
  }

  void Fail(const ApiError& error, std::string* out) const override {
    *out += "event: error\ndata: " + AnthropicDoor().error(error) + "\n\n";
  }

 private:
  // What is known of it before its first token.
  Json Message() const {
    return {{"id", head_.id},          {"type", "message"},  {"role", "assistant"},
            {"model", head_.model},    {"content", nullptr}, {"stop_reason", nullptr},
            {"stop_sequence", nullptr}};
  }

  static Json TextBlock(const std::string& text) {
    return {{"type", "text"}, {"text", text}, {"citations", nullptr}};
  }
  static Json ThinkingBlock(const std::string& text) {
    return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
  }
  Json CallBlock(std::size_t call, const std::string& name, Json input) const {
    return {{"type", "tool_use"},
            {"id", CallId(head_.id, 0, Int(call))},
            {"name", name},
            {"input", std::move(input)}};
  }

  // All of the answer, in blocks.
  Json Content() const {
    Json content = Json::array();
    if (!answer_.reasoning.empty()) content.push_back(ThinkingBlock(answer_.reasoning));
    if (!answer_.content.empty() || (answer_.calls.empty() && content.empty())) {
      content.push_back(TextBlock(answer_.content));
    }
    for (std::size_t i = 0; i < answer_.calls.size(); ++i) {
      const ChatAnswer::Call& call = answer_.calls[i];
      Json input = Json::Parse(call.arguments);
      if (!input.is_object()) input = Json::object();  // Cut off.
      content.push_back(CallBlock(i, call.name, std::move(input)));
    }
    return content;
  }

  void OpenBlock(Json block, std::string* out) {
    CloseBlock(out);
    AppendEvent(
        "content_block_start",
        {{"type", "content_block_start"}, {"index", blocks_}, {"content_block", std::move(block)}},
        out);
    ++blocks_;
  }
  void CloseBlock(std::string* out) const {
    if (blocks_ == 0) return;
    AppendEvent("content_block_stop", {{"type", "content_block_stop"}, {"index", blocks_ - 1}},
                out);
  }

  void AppendPart(const ChatPart& part, std::string* out) {
    const bool begins = blocks_ == 0 || open_ != part.kind;
    open_ = part.kind;
    switch (part.kind) {
      case ChatPart::Kind::kContent:
        if (begins) OpenBlock(TextBlock(""), out);
        return AppendDelta({{"type", "text_delta"}, {"text", part.text}}, out);
      case ChatPart::Kind::kReasoning:
        if (begins) OpenBlock(ThinkingBlock(""), out);
        return AppendDelta({{"type", "thinking_delta"}, {"thinking", part.text}}, out);
      case ChatPart::Kind::kCall:
        open_ = ChatPart::Kind::kArguments;  // The arguments belong to the same block.
        return OpenBlock(CallBlock(calls_++, part.text, Json::object()), out);
      case ChatPart::Kind::kArguments:
        return AppendDelta({{"type", "input_json_delta"}, {"partial_json", part.text}}, out);
    }
  }
  void AppendDelta(Json delta, std::string* out) const {
    AppendEvent(
        "content_block_delta",
        {{"type", "content_block_delta"}, {"index", blocks_ - 1}, {"delta", std::move(delta)}},
        out);
  }

  const ApiRequest& request_;
  const ReplyHead head_;
  ChatAnswer answer_;
  int blocks_ = 0;  // Blocks that a stream has opened; all but the last are closed.
  std::size_t calls_ = 0;
  ChatPart::Kind open_ = ChatPart::Kind::kContent;  // The kind of the last block.
  Ending ending_;
};

}  // namespace

std::unique_ptr<ReplyWriter> AnthropicWriter(const ApiRequest& request, ReplyHead head,
                                             const Tokenizer*) {
  return std::make_unique<MessageWriter>(request, std::move(head));
}

}  // namespace foretoken::server
