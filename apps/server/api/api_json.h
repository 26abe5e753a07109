#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/tokenizer.h"
#include "server/api/api_request.h"
#include "server/live_request.h"

namespace foretoken::server {

using OrderedJson = nlohmann::ordered_json;

/// The JSON as text; bytes that are not UTF-8 come out as U+FFFD.
std::string Dump(const OrderedJson& json);

/// An error as OpenAI shapes it, with the HTTP status it goes with.
struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;    ///< Empty: null.
  std::string code;     ///< Empty: null.
  int retry_after = 0;  ///< Seconds, for Retry-After; 0: none.
};
/// What a request that is at fault is answered with.
inline ApiError Refusal(const Error& error) {
  return {.message = error.message, .param = error.field};
}
/// The number that a float's shortest decimal form names: 0.8 and not 0.800000011920929.
double ShortestNumber(float number);

/// Its sentence, at the length that errors have at most.
std::string BoundedMessage(const ApiError& error);
/// {"error": {"message", "type", "param", "code"}}
std::string ErrorJson(const ApiError& error);

/// What every reply to one request shares.
struct ReplyHead {
  std::string id;
  std::int64_t created = 0;  ///< Seconds since 1970.
  std::string model;
  std::uint64_t seed = 0;  ///< Of the first choice of each prompt; the next have the next ones.
  int prompt_tokens = 0;   ///< Of the first prompt.
  bool shows_retrieved = true;  ///< A trace shows what retrieval proposed: it is the client's own.
};

/// What a token stands for, as text of its own: special tokens by name, bytes that are part of a
/// character as U+FFFD.
std::string TokenText(const Tokenizer& tokenizer, Token token);

/// The text of a whole sequence.
std::string DecodeTokens(const Tokenizer& tokenizer, std::span<const Token> tokens);

/// How OpenAI calls the end of a choice; null for what it has no name for.
std::string_view FinishName(FinishReason reason);

/// What the endings of all choices say of speculation: seed, mode, rounds and proposals.
OrderedJson SpeculationJson(std::span<const Ending> endings, std::uint64_t seed);

/// `timings` as llama.cpp has them.
OrderedJson TimingsJson(std::span<const Ending> endings);

/// Log-probabilities of these tokens as OpenAI's chats have them, one entry a token.
OrderedJson TokenLogprobs(const Tokenizer& tokenizer, std::span<const TokenPart> parts);

/// One server-sent event with a name; `json` is its data.
void AppendEvent(std::string_view name, const OrderedJson& json, std::string* out);

/// Writes the answer to one request that the engine has taken, in the form that its client asked
/// for. What is appended to `out` goes to the client at once.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  /// What comes before the first token; the prompts where they are echoed.
  virtual void Start(std::span<const std::string> echoed, std::string* out) = 0;
  virtual void Add(Burst burst, std::string* out) = 0;
  /// After the end of every choice.
  virtual void End(std::string* out) = 0;
  /// In place of End, where the answer has begun: an error.
  virtual void Fail(const ApiError& error, std::string* out) const = 0;
};

/// The server-sent events of one streaming request, which outlives it.
class EventWriter : public ReplyWriter {
 public:
  EventWriter(const ApiRequest& request, ReplyHead head, const Tokenizer* tokenizer);

  /// Roles of a chat; the prompts where they are echoed.
  void Start(std::span<const std::string> echoed, std::string* out) override;
  /// One event for the burst, another where its choice ended.
  void Add(Burst burst, std::string* out) override;
  /// Usage where it was asked for, then the end mark.
  void End(std::string* out) override;
  void Fail(const ApiError& error, std::string* out) const override;

 private:
  void Open(int choice, std::string* out) const;
  void Echo(int choice, const std::string& prompt, const OrderedJson& logprobs, std::string* out);
  void Close(std::string_view finish, std::string_view extra, std::string* out) const;
  void AppendTrace(const Burst& burst, std::string* out) const;

  const ApiRequest& request_;
  const std::uint64_t seed_;
  const bool shows_retrieved_;
  const Tokenizer* tokenizer_;
  std::string opening_;              // Of every event, up to the choice's index.
  std::vector<std::string> echoed_;  // Prompts whose log-probabilities are to come.
  std::vector<std::size_t> offsets_;
  std::vector<Ending> endings_;  // By choice.
};

/// The reply to a request that does not stream and outlives it, whole at the end.
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
    std::vector<TokenPart> tokens;
  };

  const ApiRequest& request_;
  const ReplyHead head_;
  const Tokenizer* tokenizer_;
  std::vector<Choice> choices_;
  std::vector<Ending> endings_;
};

}  // namespace foretoken::server
