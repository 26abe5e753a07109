#include "server/api/api_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/utf8.h"

namespace foretoken::server {
namespace {

double Rounded(double value, double unit) { return std::round(value / unit) * unit; }
double Milliseconds(std::int64_t ns) { return Rounded(static_cast<double>(ns) / 1e6, 0.001); }

// What all sequences of a request did together.
RequestStats Sum(std::span<const Ending> endings) {
  RequestStats sum;
  for (const auto& [reason, stats, mode] : endings) {
    sum.AddCounts(stats);
    const auto earliest = [](std::int64_t a, std::int64_t b) {
      return a == 0 || (b != 0 && b < a) ? b : a;
    };
    sum.submitted_ns = earliest(sum.submitted_ns, stats.submitted_ns);
    sum.first_token_ns = earliest(sum.first_token_ns, stats.first_token_ns);
    sum.finished_ns = std::max(sum.finished_ns, stats.finished_ns);
  }
  return sum;
}

// JSON has no infinity; OpenAI shows -9999 for what cannot be.
double FiniteLogprob(float logprob) {
  return std::isfinite(logprob) ? ShortestNumber(logprob) : -9999.0;
}

OrderedJson ChatLogprob(const Tokenizer& tokenizer, const TokenLogprob& entry) {
  OrderedJson bytes = OrderedJson::array();
  for (const char byte : tokenizer.TokenBytes(entry.token)) {
    bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  return {{"token", TokenText(tokenizer, entry.token)},
          {"logprob", FiniteLogprob(entry.logprob)},
          {"bytes", std::move(bytes)}};
}

OrderedJson CompletionLogprobs(const Tokenizer& tokenizer, std::span<const TokenPart> parts,
                               std::size_t offset) {
  OrderedJson tokens = OrderedJson::array();
  OrderedJson token_logprobs = OrderedJson::array();
  OrderedJson top_logprobs = OrderedJson::array();
  OrderedJson text_offset = OrderedJson::array();
  for (const TokenPart& part : parts) {
    tokens.push_back(TokenText(tokenizer, part.token));
    text_offset.push_back(offset);
    offset += part.characters;
    if (part.logprobs.empty()) {  // A prompt's first token follows nothing.
      token_logprobs.push_back(nullptr);
      top_logprobs.push_back(nullptr);
      continue;
    }
    token_logprobs.push_back(FiniteLogprob(part.logprobs.front().logprob));
    OrderedJson top = OrderedJson::object();
    for (std::size_t i = 1; i < part.logprobs.size(); ++i) {
      // Of tokens that read alike the likeliest stays.
      top.emplace(TokenText(tokenizer, part.logprobs[i].token),
                  FiniteLogprob(part.logprobs[i].logprob));
    }
    top_logprobs.push_back(std::move(top));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(token_logprobs)},
          {"top_logprobs", std::move(top_logprobs)},
          {"text_offset", std::move(text_offset)}};
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

// `usage`, with what speculation did. `endings` are those of all choices, `n` per prompt.
OrderedJson UsageJson(std::span<const Ending> endings, int n, std::uint64_t seed) {
  int prompt_tokens = 0;  // Choices of one prompt share it.
  int output_tokens = 0;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    if (i % static_cast<std::size_t>(n) == 0) prompt_tokens += endings[i].stats.prompt_tokens;
    output_tokens += endings[i].stats.output_tokens;
  }
  OrderedJson usage = {
      {"prompt_tokens", prompt_tokens},
      {"completion_tokens", output_tokens},
      {"total_tokens", prompt_tokens + output_tokens},
      {"prompt_tokens_details", {{"cached_tokens", endings.front().stats.cached_prompt_tokens}}}};
  usage.update(SpeculationJson(endings, seed));
  return usage;
}

// `logprobs` of these tokens as chats have them, or as completions have them; `text_offset` is
// where the first token's text begins in the choice's.
OrderedJson LogprobsJson(ApiKind kind, const Tokenizer& tokenizer, std::span<const TokenPart> parts,
                         std::size_t text_offset) {
  return kind == ApiKind::kChat
             ? OrderedJson{{"content", TokenLogprobs(tokenizer, parts)}, {"refusal", nullptr}}
             : CompletionLogprobs(tokenizer, parts, text_offset);
}

}  // namespace

std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

double ShortestNumber(float number) { return std::stod(fmt::format("{}", number)); }

// A sentence longer than any of ours repeats something long that was sent: its middle goes.
std::string BoundedMessage(const ApiError& error) {
  constexpr std::size_t kLongest = 700;
  constexpr std::size_t kFront = 140;
  constexpr std::size_t kBack = 60;
  const std::string& message = error.message;
  if (message.size() <= kLongest) return message;
  std::size_t back = message.size() - kBack;
  while ((static_cast<unsigned char>(message[back]) & 0xC0) == 0x80) ++back;
  return Shortened(message, kFront) + message.substr(back);
}

std::string ErrorJson(const ApiError& error) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? OrderedJson(nullptr) : OrderedJson(Shortened(text));
  };
  const OrderedJson json = {{"error",
                             {{"message", BoundedMessage(error)},
                              {"type", error.type},
                              {"param", or_null(error.param)},
                              {"code", or_null(error.code)}}}};
  return Dump(json);
}

std::string TokenText(const Tokenizer& tokenizer, Token token) {
  if (tokenizer.IsSpecial(token)) return std::string(tokenizer.TokenName(token));
  IncrementalDecoder decoder(&tokenizer, /*continues_text=*/true);
  std::string text = decoder.Push(token);
  return text + decoder.Finish();
}

std::string DecodeTokens(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  IncrementalDecoder decoder(&tokenizer);
  std::string text;
  for (const Token token : tokens) text += decoder.Push(token);
  return text + decoder.Finish();
}

std::string_view FinishName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfSequence:
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
    case FinishReason::kGrammarEnd:
      return "stop";
    case FinishReason::kMaxTokens:
    case FinishReason::kContextFull:
    case FinishReason::kGrammarStuck:
      return "length";
    case FinishReason::kCancelled:
      break;
  }
  return "";
}

OrderedJson SpeculationJson(std::span<const Ending> endings, std::uint64_t seed) {
  const RequestStats sum = Sum(endings);
  const int lookups = sum.lookups_partial + sum.lookups_full;
  const double hits = sum.hits_partial + sum.hits_full;
  return {{"seed", seed},
          {"mode", ModeName(endings.front().mode)},
          {"rounds", sum.rounds},
          {"draft_n", sum.proposed},
          {"draft_n_accepted", sum.accepted},
          {"acceptance_length", Rounded(sum.acceptance_length(), 0.001)},
          {"hit_rate", lookups == 0 ? OrderedJson(nullptr) : OrderedJson(hits / lookups)}};
}

OrderedJson TimingsJson(std::span<const Ending> endings) {
  const RequestStats sum = Sum(endings);
  const int computed = sum.prompt_tokens - sum.cached_prompt_tokens;
  const double prompt_ms = Milliseconds(sum.first_token_ns - sum.submitted_ns);
  const double predicted_ms = Milliseconds(sum.finished_ns - sum.first_token_ns);
  // The first token of each choice comes with its prompt.
  const int decoded = std::max(0, sum.output_tokens - static_cast<int>(endings.size()));
  const auto per_second = [](int count, double ms) {
    return ms <= 0 ? 0 : Rounded(count * 1000 / ms, 0.01);
  };
  const auto per_token = [](int count, double ms) {
    return count <= 0 ? 0 : Rounded(ms / count, 0.0001);
  };
  return {{"cache_n", sum.cached_prompt_tokens},
          {"prompt_n", computed},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", per_token(computed, prompt_ms)},
          {"prompt_per_second", per_second(computed, prompt_ms)},
          {"predicted_n", sum.output_tokens},
          {"predicted_ms", predicted_ms},
          {"predicted_per_token_ms", per_token(decoded, predicted_ms)},
          {"predicted_per_second", per_second(decoded, predicted_ms)},
          {"draft_n", sum.proposed},
          {"draft_n_accepted", sum.accepted}};
}

OrderedJson TokenLogprobs(const Tokenizer& tokenizer, std::span<const TokenPart> parts) {
  OrderedJson content = OrderedJson::array();
  for (const TokenPart& part : parts) {
    OrderedJson entry = ChatLogprob(tokenizer, part.logprobs.front());
    OrderedJson top = OrderedJson::array();
    for (std::size_t i = 1; i < part.logprobs.size(); ++i) {
      top.push_back(ChatLogprob(tokenizer, part.logprobs[i]));
    }
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return content;
}

void AppendEvent(std::string_view name, const OrderedJson& json, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "event: {}\ndata: {}\n\n", name, Dump(json));
}

EventWriter::EventWriter(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer)
    : request_(request),
      seed_(head.seed),
      shows_retrieved_(head.shows_retrieved),
      tokenizer_(tokenizer),
      offsets_(static_cast<std::size_t>(request.choices())),
      endings_(static_cast<std::size_t>(request.choices())) {
  const OrderedJson opening = {
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

void EventWriter::Echo(int choice, const std::string& prompt, const OrderedJson& logprobs,
                       std::string* out) {
  Open(choice, out);
  *out += "\"text\":" + Dump(prompt) + ",\"logprobs\":" + Dump(logprobs);
  Close("", "", out);
  offsets_[static_cast<std::size_t>(choice)] = CharactersIn(prompt);
}

void EventWriter::Start(std::span<const std::string> echoed, std::string* out) {
  if (request_.scores_prompts()) {
    echoed_.assign(echoed.begin(), echoed.end());
    return;
  }
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    if (request_.kind == ApiKind::kChat) {
      Open(static_cast<int>(i), out);
      *out += R"("delta":{"role":"assistant","content":""},"logprobs":null)";
      Close("", "", out);
    } else if (!echoed.empty()) {
      Echo(static_cast<int>(i), echoed[i / static_cast<std::size_t>(request_.n)], nullptr, out);
    }
  }
}

void EventWriter::AppendTrace(const Burst& burst, std::string* out) const {
  const RoundTrace& round = *burst.round;
  fmt::format_to(std::back_inserter(*out),
                 R"(,"speculation":{{"round":{},"mode":"{}","source":"{}","proposed":[)",
                 round.round, ModeName(round.mode), ProposalSourceName(round.source));
  // Mode trie proposes what it saw in the requests of everybody.
  const bool own = shows_retrieved_ && round.mode != Mode::kTrie;
  const bool shown = own || round.source != ProposalSource::kRetrieval;
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

void EventWriter::Add(Burst burst, std::string* out) {
  const auto choice = static_cast<std::size_t>(burst.choice);
  if (!burst.prompt.empty()) {
    const std::string& prompt = echoed_[choice / static_cast<std::size_t>(request_.n)];
    ShareText(*tokenizer_, prompt, &burst.prompt);
    Echo(burst.choice, prompt, LogprobsJson(request_.kind, *tokenizer_, burst.prompt, 0), out);
  }
  if (!burst.text.empty() || !burst.tokens.empty()) {
    Open(burst.choice, out);
    *out += request_.kind == ApiKind::kChat ? "\"delta\":{\"content\":" : "\"text\":";
    *out += Dump(burst.text);
    *out += request_.kind == ApiKind::kChat ? "},\"logprobs\":" : ",\"logprobs\":";
    *out += request_.sampling.top_logprobs >= 0 && !burst.tokens.empty()
                ? Dump(LogprobsJson(request_.kind, *tokenizer_, burst.tokens, offsets_[choice]))
                : "null";
    offsets_[choice] += CharactersIn(burst.text);
    std::string trace;
    if (burst.round.has_value()) AppendTrace(burst, &trace);
    Close("", trace, out);
  }
  if (burst.ending.has_value()) {
    endings_[choice] = *burst.ending;
    const std::string_view finish = FinishName(burst.ending->reason);
    if (finish.empty()) return;  // Cancelled: Fail says so.
    Open(burst.choice, out);
    *out += request_.kind == ApiKind::kChat ? R"("delta":{},"logprobs":null)"
                                            : R"("text":"","logprobs":null)";
    Close(finish, ",\"timings\":" + Dump(TimingsJson(std::span(&*burst.ending, 1))), out);
  }
}

void EventWriter::End(std::string* out) {
  if (request_.include_usage) {
    *out += opening_;
    *out += "],\"usage\":" + Dump(UsageJson(endings_, request_.n, seed_)) +
            ",\"timings\":" + Dump(TimingsJson(endings_)) + "}\n\n";
  }
  *out += "data: [DONE]\n\n";
}

void EventWriter::Fail(const ApiError& error, std::string* out) const {
  *out += "data: " + ErrorJson(error) + "\n\ndata: [DONE]\n\n";
}

ReplyBuilder::ReplyBuilder(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer)
    : request_(request),
      head_(std::move(head)),
      tokenizer_(tokenizer),
      choices_(static_cast<std::size_t>(request.choices())),
      endings_(static_cast<std::size_t>(request.choices())) {}

void ReplyBuilder::Start(std::span<const std::string> echoed, std::string*) {
  if (echoed.empty()) return;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].text = echoed[i / static_cast<std::size_t>(request_.n)];
  }
}

void ReplyBuilder::Add(Burst burst, std::string*) {
  const auto index = static_cast<std::size_t>(burst.choice);
  Choice& choice = choices_[index];
  if (!burst.prompt.empty()) {
    ShareText(*tokenizer_, choice.text, &burst.prompt);
    choice.tokens = std::move(burst.prompt);
  }
  choice.text += burst.text;
  std::move(burst.tokens.begin(), burst.tokens.end(), std::back_inserter(choice.tokens));
  if (burst.ending.has_value()) endings_[index] = *burst.ending;
}

void ReplyBuilder::Fail(const ApiError& error, std::string* out) const { *out = ErrorJson(error); }

void ReplyBuilder::End(std::string* out) {
  const bool chat = request_.kind == ApiKind::kChat;
  OrderedJson choices = OrderedJson::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    OrderedJson json = {{"index", i}};
    if (chat) {
      json["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
    } else {
      json["text"] = choice.text;
    }
    json["logprobs"] = request_.sampling.top_logprobs >= 0
                           ? LogprobsJson(request_.kind, *tokenizer_, choice.tokens, 0)
                           : nullptr;
    json["finish_reason"] = FinishName(endings_[i].reason);
    choices.push_back(std::move(json));
  }
  const OrderedJson reply = {{"id", head_.id},
                             {"object", chat ? "chat.completion" : "text_completion"},
                             {"created", head_.created},
                             {"model", head_.model},
                             {"choices", std::move(choices)},
                             {"usage", UsageJson(endings_, request_.n, head_.seed)},
                             {"timings", TimingsJson(endings_)}};
  *out = Dump(reply);
}

}  // namespace foretoken::server
