#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/foretoken/server/api/burst.h"
#include "base/result.h"
#include "foretoken/tokenizer.h"
#include "json/json.h"

namespace foretoken::server {

/// The JSON as text; bytes that are not UTF-8 come out as U+FFFD.
std::string Dump(const Json& json);

/// A prompt that has more tokens than fit. Agents shorten a chat where an error says this in the
/// words of the API that they speak, so each door says it in its own.
struct PromptTooLong {
  std::int64_t tokens = 0;  ///< How many tokens the prompt has.
  bool at_least = false;    ///< It has `tokens` or more: it is too long to be tokenised.
  int most = 0;             ///< How many tokens a prompt may have.
  int context = 0;          ///< How many tokens a prompt and its output may have together.

  /// "9000", or "at least 9000".
  std::string Count() const;
};

/// An error as OpenAI shapes it, with the HTTP status it goes with.
struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;    ///< Empty: null.
  std::string code;     ///< Empty: null.
  int retry_after = 0;  ///< Seconds, for Retry-After; 0: none.
  /// Where the error is this: `message` says it in words of no API.
  std::optional<PromptTooLong> too_long = {};
};
/// What a request that is at fault is answered with.
inline ApiError Refusal(const Error& error) {
  return {.message = error.message, .param = error.field};
}

/// What a prompt that is too long, the field `param`, is answered with.
ApiError Refusal(const PromptTooLong& prompt, std::string param);

/// Its sentence, at the length that errors have at most.
std::string BoundedMessage(const ApiError& error);
/// {"error": {"message", "type", "param", "code"}}
std::string ErrorJson(const ApiError& error);

/// The number that a float's shortest decimal form names: 0.8 and not 0.800000011920929.
double ShortestNumber(float number);
inline int ShortestNumber(int number) { return number; }
/// A log-probability in JSON, which has no infinity: OpenAI shows -9999 for what cannot be.
double FiniteLogprob(float logprob);

/// What a token stands for, as text of its own: special tokens by name, bytes that are part of a
/// character as U+FFFD.
std::string TokenText(const Tokenizer& tokenizer, Token token);

/// The text of a whole sequence.
std::string DecodeTokens(const Tokenizer& tokenizer, std::span<const Token> tokens);

/// How OpenAI calls the end of a choice; null for what it has no name for.
std::string_view FinishName(FinishReason reason);

/// What the endings of all choices say of speculation: seed, mode, rounds and proposals.
Json SpeculationJson(std::span<const Ending> endings, std::uint64_t seed);

/// `timings` as llama.cpp has them.
Json TimingsJson(std::span<const Ending> endings);

/// Adds a member to the text of an object: `value` is JSON that is text already, as what becomes
/// long is from the beginning. As Json it would take ten times the memory.
void AppendMember(std::string_view name, std::string_view value, std::string* object);

/// Appends elements to the text of an array: `elements` is the text of one, too.
void AppendElements(std::string_view elements, std::string* array);

/// Log-probabilities of these tokens as OpenAI's chats have them, an array with one entry a token,
/// as text; `ids`: with each token's id besides, as llama.cpp has them.
std::string TokenLogprobs(const Tokenizer& tokenizer, std::span<const TokenPart> parts,
                          bool ids = false);

/// One server-sent event with a name; `json` is its data.
void AppendEvent(std::string_view name, const Json& json, std::string* out);
/// The same of JSON that is text already.
void AppendEventText(std::string_view name, std::string_view json, std::string* out);

}  // namespace foretoken::server
