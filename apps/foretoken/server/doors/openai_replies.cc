#include "apps/foretoken/server/doors/doors.h"
#include "base/numbers/integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "apps/foretoken/server/api/chat_answer.h"
#include "apps/foretoken/server/api/tool_fields.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

// Whether what a mode proposes may be text of other requests: without keys of everybody's.
constexpr bool SeesOthers(Mode mode) { return mode.drafts() && InfoOf(mode.drafter).remembers; }

std::string CompletionLogprobs(const Tokenizer& tokenizer, std::span<const TokenPart> parts,
                               std::size_t offset) {
  std::string tokens = "[";
  std::string token_logprobs = "[";
  std::string top_logprobs = "[";
  std::string text_offset = "[";
  const auto append = [](std::string* list, std::string_view item) {
    if (list->size() > 1) list->push_back(',');
    list->append(item);
  };
  for (const TokenPart& part : parts) {
    append(&tokens, Dump(TokenText(tokenizer, part.token)));
    append(&text_offset, std::to_string(offset));
    offset += part.characters;
    if (part.logprobs.empty()) {  // A prompt's first token follows nothing.
      append(&token_logprobs, "null");
      append(&top_logprobs, "null");
      continue;
    }
    append(&token_logprobs, Dump(FiniteLogprob(part.logprobs.front().logprob)));
    Json top = Json::object();
    for (std::size_t i = 1; i < part.logprobs.size(); ++i) {
      // The likeliest of tokens that read alike stays.
      top.emplace(TokenText(tokenizer, part.logprobs[i].token),
                  FiniteLogprob(part.logprobs[i].logprob));
    }
    append(&top_logprobs, Dump(top));
  }
  return "{\"tokens\":" + tokens + "],\"token_logprobs\":" + token_logprobs +
         "],\"top_logprobs\":" + top_logprobs + "],\"text_offset\":" + text_offset + "]}";
}

// Gives the tokens of a prompt their shares of `text`, as which it is echoed.
void ShareText(const Tokenizer& tokenizer, std::string_view text, std::vector<TokenPart>* prompt) {
  std::size_t left = CharactersIn(text);
  IncrementalDecoder decoder(&tokenizer);
  for (TokenPart& part : *prompt) {
    part.characters = std::min(CharactersIn(decoder.Push(part.token)), left);
    left -= part.characters;
  }
  prompt->back().characters += left;
}

// `usage`, with what speculation did. `endings` are those of all choices.
Json UsageJson(const ApiRequest& request, std::span<const Ending> endings, std::uint64_t seed) {
  const int n = request.n;
  int prompt_tokens = 0;  // Choices of one prompt share it.
  int output_tokens = 0;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    if (i % n == 0) prompt_tokens += endings[i].stats.prompt_tokens;
    output_tokens += endings[i].stats.output_tokens;
  }
  Json usage = {
      {"prompt_tokens", prompt_tokens},
      {"completion_tokens", output_tokens},
      {"total_tokens", prompt_tokens + output_tokens},
      {"prompt_tokens_details", {{"cached_tokens", endings.front().stats.cached_prompt_tokens}}}};
  const Json speculation = SpeculationJson(endings, seed);
  usage.update(speculation);
  if (!request.prediction.empty()) {
    const int accepted = speculation["draft_n_accepted"];
    usage["completion_tokens_details"] = {
        {"accepted_prediction_tokens", accepted},
        {"rejected_prediction_tokens", speculation["draft_n"].get<int>() - accepted}};
  }
  return usage;
}

// `logprobs` of these tokens as chats have them, or as completions have them; `text_offset` is
// where the first token's text begins in the choice's.
std::string LogprobsText(ApiKind kind, const Tokenizer& tokenizer, std::span<const TokenPart> parts,
                         std::size_t text_offset) {
  return kind == ApiKind::kChat
             ? "{\"content\":" + TokenLogprobs(tokenizer, parts) + ",\"refusal\":null}"
             : CompletionLogprobs(tokenizer, parts, text_offset);
}

std::vector<Token> TokensOf(std::span<const TokenPart> parts) {
  std::vector<Token> tokens;
  for (const TokenPart& part : parts) tokens.push_back(part.token);
  return tokens;
}

struct IdentifiedCall {
  std::string id;
  std::string_view name;
  std::string_view arguments;
};
Json CallJson(const IdentifiedCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

// The message of choice `choice` of the reply `id`.
Json MessageJson(const ApiRequest& request, const ChatAnswer& answer, const std::string& id,
                 int choice) {
  Json message = {{"role", "assistant"}, {"content", answer.content}, {"refusal", nullptr}};
  if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
  if (answer.calls.empty()) return message;
  if (answer.content.empty()) message["content"] = nullptr;
  if (request.old_calls) {
    const ChatAnswer::Call& call = answer.calls.front();
    message["function_call"] = {{"name", call.name}, {"arguments", call.arguments}};
    return message;
  }
  Json& calls = message["tool_calls"] = Json::array();
  for (std::size_t i = 0; i < answer.calls.size(); ++i) {
    const ChatAnswer::Call& call = answer.calls[i];
    calls.push_back(CallJson({CallId(id, choice, Int(i)), call.name, call.arguments}));
  }
  return message;
}

// `finish_reason` of a choice; empty where it was cancelled.
std::string_view FinishOf(const ApiRequest& request, const Ending& ending, bool has_calls) {
  const std::string_view name = FinishName(ending.reason);
  if (!has_calls || name != "stop") return name;
  return request.old_calls ? "function_call" : "tool_calls";
}

// The server-sent events of one streaming request, which outlives it.
class EventWriter : public ReplyWriter {
 public:
  EventWriter(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer);

  // Roles of a chat; the prompts where they are echoed.
  void Start(std::span<const std::string> echoed, std::string* out) override;
  // One event for the burst, another where its choice ended.
  void Add(Burst burst, std::string* out) override;
  // Usage where it was asked for, then the end mark.
  void End(std::string* out) override;
  void Fail(const ApiError& error, std::string* out) const override;

 private:
  void Open(int choice, std::string* out) const;
  void Echo(int choice, const std::string& prompt, std::string_view logprobs, std::string* out);
  void Close(std::string_view finish, std::string_view extra, std::string* out) const;
  void AppendTrace(const Burst& burst, std::string* out) const;
  void AppendBurst(const Burst& burst, std::string* out);
  Json DeltaOf(const ChatPart& part, int choice);

  const ApiRequest& request_;
  const std::string id_;
  const std::uint64_t seed_;
  const bool shows_retrieved_;
  const decltype(ReplyHead::receipt) receipt_;
  const Tokenizer* tokenizer_;
  std::string opening_;              // The beginning of every event, up to the choice's index.
  std::vector<std::string> echoed_;  // Prompts whose log-probabilities are to come.
  std::vector<std::size_t> offsets_;
  std::vector<Ending> endings_;             // By choice.
  std::vector<int> calls_;                  // Calls that have begun, by choice.
  std::vector<std::vector<Token>> tokens_;  // The tokens of each choice, for receipts.
};

// The reply to a request that does not stream and outlives it, whole at the end.
class ReplyBuilder : public ReplyWriter {
 public:
  ReplyBuilder(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer);

  void Start(std::span<const std::string> echoed, std::string* out) override;
  void Add(Burst burst, std::string* out) override;
  void End(std::string* out) override;
  void Fail(const ApiError& error, std::string* out) const override;

 private:
  struct Choice {
    std::string text;
    ChatAnswer answer;  // A chat's, in place of the text.
    std::vector<TokenPart> tokens;
    std::size_t prompt_parts = 0;  // How many of the tokens stand before the output.
  };

  std::string ChoiceText(int index) const;

  const ApiRequest& request_;
  const ReplyHead head_;
  const Tokenizer* tokenizer_;
  std::vector<Choice> choices_;
  std::vector<Ending> endings_;
};

EventWriter::EventWriter(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer)
    : request_(request),
      id_(head.id),
      seed_(head.seed),
      shows_retrieved_(head.shows_retrieved),
      receipt_(head.receipt),
      tokenizer_(tokenizer),
      offsets_(request.choices()),
      endings_(request.choices()),
      calls_(request.choices()),
      tokens_(request.choices()) {
  const Json opening = {
      {"id", head.id},
      {"object", request_.kind == ApiKind::kChat ? "chat.completion.chunk" : "text_completion"},
      {"created", head.created},
      {"model", head.model}};
  opening_ = "data: " + Dump(opening);
  opening_.pop_back();
  opening_ += ",\"choices\":[";
}

void EventWriter::Open(int choice, std::string* out) const {
  *out += opening_;
  fmt::format_to(std::back_inserter(*out), "{{\"index\":{},", choice);
}

// `finish` empty: not yet. `extra`: more members of the event, each with a comma before it.
void EventWriter::Close(std::string_view finish, std::string_view extra, std::string* out) const {
  *out += finish.empty() ? ",\"finish_reason\":null}]"
                         : fmt::format(",\"finish_reason\":\"{}\"}}]", finish);
  if (request_.include_usage) *out += ",\"usage\":null";
  *out += extra;
  *out += "}\n\n";
}

void EventWriter::Echo(int choice, const std::string& prompt, std::string_view logprobs,
                       std::string* out) {
  Open(choice, out);
  *out += "\"text\":" + Dump(prompt) + ",\"logprobs\":";
  *out += logprobs;
  Close("", "", out);
  offsets_[choice] = CharactersIn(prompt);
}

void EventWriter::Start(std::span<const std::string> echoed, std::string* out) {
  if (request_.scores_prompts()) {
    echoed_.assign(echoed.begin(), echoed.end());
    return;
  }
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    if (request_.kind == ApiKind::kChat) {
      Open(Int(i), out);
      *out += R"("delta":{"role":"assistant","content":""},"logprobs":null)";
      Close("", "", out);
    } else if (!echoed.empty()) {
      Echo(Int(i), echoed[i / request_.n], "null", out);
    }
  }
}

void EventWriter::AppendTrace(const Burst& burst, std::string* out) const {
  const RoundTrace& round = *burst.round;
  fmt::format_to(std::back_inserter(*out),
                 R"(,"speculation":{{"round":{},"mode":"{}","source":"{}","proposed":[)",
                 round.round, ModeName(round.mode), ProposalSourceName(round.source));
  const bool retrieved = round.source == ProposalSource::kRetrieval;
  const bool shown = !SeesOthers(round.mode) && (shows_retrieved_ || !retrieved);
  for (std::size_t i = 0; i < round.proposed.size(); ++i) {
    if (i > 0) out->push_back(',');
    *out += shown ? Dump(TokenText(*tokenizer_, round.proposed[i])) : "null";
  }
  fmt::format_to(std::back_inserter(*out), R"(],"accepted":{},"hit":{},"ms":{:.3f},"tokens":[)",
                 round.accepted, round.hit.has_value() ? (*round.hit ? "true" : "false") : "null",
                 round.milliseconds);
  std::size_t offset = 0;
  for (std::size_t i = 0; i < burst.tokens.size(); ++i) {
    const TokenPart& part = burst.tokens[i];
    fmt::format_to(std::back_inserter(*out), R"({}{{"id":{},"text":{},"origin":"{}"}})",
                   i > 0 ? "," : "", part.token, Dump(burst.text.substr(offset, part.text_bytes)),
                   kOriginNames[static_cast<std::size_t>(part.origin)]);
    offset += part.text_bytes;
  }
  *out += "]}";
}

// What a part adds to a choice's message.
Json EventWriter::DeltaOf(const ChatPart& part, int choice) {
  int& calls = calls_[choice];
  switch (part.kind) {
    case ChatPart::Kind::kContent:
      return {{"content", part.text}};
    case ChatPart::Kind::kReasoning:
      return {{"reasoning_content", part.text}};
    case ChatPart::Kind::kCall: {
      if (request_.old_calls) {
        ++calls;
        return {{"function_call", {{"name", part.text}, {"arguments", ""}}}};
      }
      Json call = CallJson({CallId(id_, choice, calls), part.text, ""});
      call["index"] = calls++;
      return {{"tool_calls", Json::array({std::move(call)})}};
    }
    case ChatPart::Kind::kArguments: {
      if (request_.old_calls) return {{"function_call", {{"arguments", part.text}}}};
      const Json more = {{"index", calls - 1}, {"function", {{"arguments", part.text}}}};
      return {{"tool_calls", Json::array({more})}};
    }
  }
  return {};
}

// An event for each part; what is told of tokens goes with the first.
void EventWriter::AppendBurst(const Burst& burst, std::string* out) {
  const bool chat = request_.kind == ApiKind::kChat;
  if ((chat ? burst.parts.empty() : burst.text.empty()) && burst.tokens.empty()) return;
  const std::size_t choice = burst.choice;
  std::string logprobs = ",\"logprobs\":null";
  if (request_.sampling.top_logprobs >= 0 && !burst.tokens.empty()) {
    logprobs =
        ",\"logprobs\":" + LogprobsText(request_.kind, *tokenizer_, burst.tokens, offsets_[choice]);
  }
  offsets_[choice] += CharactersIn(burst.text);
  if (receipt_) std::ranges::move(TokensOf(burst.tokens), std::back_inserter(tokens_[choice]));
  std::string trace;
  if (burst.round.has_value()) AppendTrace(burst, &trace);
  std::vector<Json> deltas;
  for (const ChatPart& part : burst.parts) deltas.push_back(DeltaOf(part, burst.choice));
  if (deltas.empty()) deltas.push_back({{"content", ""}});
  for (const Json& delta : deltas) {
    Open(burst.choice, out);
    *out += chat ? "\"delta\":" + Dump(delta) : "\"text\":" + Dump(burst.text);
    *out += std::exchange(logprobs, ",\"logprobs\":null");
    Close("", std::exchange(trace, {}), out);
  }
}

void EventWriter::Add(Burst burst, std::string* out) {
  const std::size_t choice = burst.choice;
  if (!burst.prompt.empty()) {
    const std::string& prompt = echoed_[choice / Size(request_.n)];
    ShareText(*tokenizer_, prompt, &burst.prompt);
    Echo(burst.choice, prompt, LogprobsText(request_.kind, *tokenizer_, burst.prompt, 0), out);
  }
  AppendBurst(burst, out);
  if (burst.ending.has_value()) {
    endings_[choice] = *burst.ending;
    const std::string_view finish = FinishOf(request_, *burst.ending, calls_[choice] > 0);
    if (finish.empty()) return;  // Cancelled: Fail says so.
    Open(burst.choice, out);
    *out += request_.kind == ApiKind::kChat ? R"("delta":{},"logprobs":null)"
                                            : R"("text":"","logprobs":null)";
    std::string extra = ",\"timings\":" + Dump(TimingsJson(std::span(&*burst.ending, 1)));
    const FinishReason reason = burst.ending->reason;
    if (receipt_) extra += ",\"receipt\":" + receipt_(burst.choice, tokens_[choice], reason);
    Close(finish, extra, out);
  }
}

void EventWriter::End(std::string* out) {
  if (request_.include_usage) {
    *out += opening_;
    *out += "],\"usage\":" + Dump(UsageJson(request_, endings_, seed_)) +
            ",\"timings\":" + Dump(TimingsJson(endings_)) + "}\n\n";
  }
  *out += "data: [DONE]\n\n";
}

void EventWriter::Fail(const ApiError& error, std::string* out) const {
  *out += "data: " + OpenAiError(error) + "\n\ndata: [DONE]\n\n";
}

ReplyBuilder::ReplyBuilder(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer)
    : request_(request),
      head_(std::move(head)),
      tokenizer_(tokenizer),
      choices_(request.choices()),
      endings_(request.choices()) {}

void ReplyBuilder::Start(std::span<const std::string> echoed, std::string*) {
  if (echoed.empty()) return;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].text = echoed[i / request_.n];
  }
}

void ReplyBuilder::Add(Burst burst, std::string*) {
  const std::size_t index = burst.choice;
  Choice& choice = choices_[index];
  if (!burst.prompt.empty()) {
    ShareText(*tokenizer_, choice.text, &burst.prompt);
    choice.tokens = std::move(burst.prompt);
    choice.prompt_parts = choice.tokens.size();
  }
  choice.text += burst.text;
  choice.answer.Add(burst.parts);
  std::move(burst.tokens.begin(), burst.tokens.end(), std::back_inserter(choice.tokens));
  if (burst.ending.has_value()) endings_[index] = *burst.ending;
}

void ReplyBuilder::Fail(const ApiError& error, std::string* out) const {
  *out = OpenAiError(error);
}

void ReplyBuilder::End(std::string* out) {
  const bool chat = request_.kind == ApiKind::kChat;
  std::string choices = "[";
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) choices.push_back(',');
    choices += ChoiceText(Int(i));
    choices_[i] = {};
  }
  choices.push_back(']');
  *out = Dump({{"id", head_.id},
               {"object", chat ? "chat.completion" : "text_completion"},
               {"created", head_.created},
               {"model", head_.model}});
  AppendMember("choices", choices, out);
  AppendMember("usage", Dump(UsageJson(request_, endings_, head_.seed)), out);
  AppendMember("timings", Dump(TimingsJson(endings_)), out);
}

std::string ReplyBuilder::ChoiceText(int index) const {
  const Choice& choice = choices_[index];
  const Ending& ending = endings_[index];
  Json said = {{"index", index}};
  if (request_.kind == ApiKind::kChat) {
    said["message"] = MessageJson(request_, choice.answer, head_.id, index);
  } else {
    said["text"] = choice.text;
  }
  std::string text = Dump(said);
  AppendMember("logprobs",
               request_.sampling.top_logprobs >= 0
                   ? LogprobsText(request_.kind, *tokenizer_, choice.tokens, 0)
                   : "null",
               &text);
  AppendMember("finish_reason", Dump(FinishOf(request_, ending, !choice.answer.calls.empty())),
               &text);
  if (head_.receipt) {
    const auto output = std::span(choice.tokens).subspan(choice.prompt_parts);
    AppendMember("receipt", head_.receipt(index, TokensOf(output), ending.reason), &text);
  }
  return text;
}

}  // namespace

std::unique_ptr<ReplyWriter> OpenAiWriter(const ApiRequest& request, ReplyHead head,
                                          const Tokenizer* tokenizer) {
  if (request.stream) return std::make_unique<EventWriter>(request, std::move(head), tokenizer);
  return std::make_unique<ReplyBuilder>(request, std::move(head), tokenizer);
}

}  // namespace foretoken::server
