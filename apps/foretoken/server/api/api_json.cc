#include "apps/foretoken/server/api/api_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

// To a part of one: 100 for hundredths. Divided, which unlike a product of the part prints short.
double Rounded(double value, double parts) { return std::round(value * parts) / parts; }
double Milliseconds(std::int64_t ns) { return Rounded(static_cast<double>(ns) / 1e6, 1000); }

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

Json ChatLogprob(const Tokenizer& tokenizer, const TokenLogprob& entry) {
  Json bytes = Json::array();
  for (const char byte : tokenizer.TokenBytes(entry.token)) {
    bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  return {{"token", TokenText(tokenizer, entry.token)},
          {"logprob", FiniteLogprob(entry.logprob)},
          {"bytes", std::move(bytes)}};
}

}  // namespace

std::string Dump(const Json& json) { return json.dump(); }

double ShortestNumber(float number) { return std::stod(fmt::format("{}", number)); }

double FiniteLogprob(float logprob) {
  return std::isfinite(logprob) ? ShortestNumber(logprob) : -9999.0;
}

std::string PromptTooLong::Count() const {
  return fmt::format("{}{}", at_least ? "at least " : "", tokens);
}

ApiError Refusal(const PromptTooLong& prompt, std::string param) {
  return {
      .message = fmt::format("the prompt has {} tokens, but at most {} are allowed (the context "
                             "holds {}); shorten it",
                             prompt.Count(), prompt.most, prompt.context),
      .param = std::move(param),
      .code = "context_length_exceeded",
      .too_long = prompt};
}

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
    return text.empty() ? Json(nullptr) : Json(Shortened(text));
  };
  const Json json = {{"error",
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
    case FinishReason::kNotFinite:
    case FinishReason::kCancelled:
      break;
  }
  return "";
}

Json SpeculationJson(std::span<const Ending> endings, std::uint64_t seed) {
  const RequestStats sum = Sum(endings);
  const int lookups = sum.lookups_partial + sum.lookups_full;
  const double hits = sum.hits_partial + sum.hits_full;
  Json json = {{"seed", seed},
               {"mode", ModeName(endings.front().mode)},
               {"rounds", sum.rounds},
               {"draft_n", sum.proposed},
               {"draft_n_accepted", sum.accepted},
               {"acceptance_length", Rounded(sum.acceptance_length(), 1000)},
               {"hit_rate", lookups == 0 ? Json(nullptr) : Json(hits / lookups)}};
  if (sum.lossy_rule == Lossy::kNone) return json;
  json["lossy"] = LossyName(sum.lossy_rule);
  json["lossy_n"] = sum.lossy;
  return json;
}

Json TimingsJson(std::span<const Ending> endings) {
  const RequestStats sum = Sum(endings);
  const int computed = sum.prompt_tokens - sum.cached_prompt_tokens;
  const double prompt_ms = Milliseconds(sum.first_token_ns - sum.submitted_ns);
  const double predicted_ms = Milliseconds(sum.finished_ns - sum.first_token_ns);
  // The first token of each choice comes with its prompt.
  const int decoded = std::max(0, sum.output_tokens - Int(endings.size()));
  const auto per_second = [](int count, double ms) {
    return ms <= 0 ? 0 : Rounded(count * 1000 / ms, 100);
  };
  const auto per_token = [](int count, double ms) {
    return count <= 0 ? 0 : Rounded(ms / count, 10000);
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

void AppendMember(std::string_view name, std::string_view value, std::string* object) {
  object->pop_back();  // Its bracket.
  if (object->back() != '{') object->push_back(',');
  fmt::format_to(std::back_inserter(*object), "\"{}\":", name);
  object->append(value);
  object->push_back('}');
}

void AppendElements(std::string_view elements, std::string* array) {
  if (elements == "[]") return;
  array->pop_back();  // Its bracket.
  if (array->back() != '[') array->push_back(',');
  array->append(elements.substr(1));
}

std::string TokenLogprobs(const Tokenizer& tokenizer, std::span<const TokenPart> parts, bool ids) {
  const auto entry = [&](const TokenLogprob& of) {
    Json json = ChatLogprob(tokenizer, of);
    if (ids) json["id"] = of.token;
    return Dump(json);
  };
  std::string text = "[";
  for (const TokenPart& part : parts) {
    std::string top = "[";
    for (std::size_t i = 1; i < part.logprobs.size(); ++i) {
      if (i > 1) top.push_back(',');
      top += entry(part.logprobs[i]);
    }
    top.push_back(']');
    if (text.size() > 1) text.push_back(',');
    text += entry(part.logprobs.front());
    AppendMember("top_logprobs", top, &text);
  }
  text.push_back(']');
  return text;
}

void AppendEvent(std::string_view name, const Json& json, std::string* out) {
  AppendEventText(name, Dump(json), out);
}

void AppendEventText(std::string_view name, std::string_view json, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "event: {}\ndata: {}\n\n", name, json);
}

}  // namespace foretoken::server
