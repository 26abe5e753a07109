#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/foretoken/server/api/api_json.h"
#include "apps/foretoken/server/api/api_request.h"

namespace foretoken::server {

/// A reply that has ended, as later requests may go on with it.
struct WholeReply {
  std::string json;
  std::vector<ChatMessage> turns;  ///< The turns of a chat that its answer is.
  /// The parts of its answer by their ids, as the JSON that an input has of them.
  std::map<std::string, std::string> items;
};

/// What every reply to one request shares.
struct ReplyHead {
  std::string id;
  std::int64_t created = 0;  ///< Seconds since 1970.
  std::string model;
  std::uint64_t seed = 0;  ///< The seed of each prompt's first choice; the next have the next ones.
  int prompt_tokens = 0;   ///< The tokens of the first prompt.
  bool shows_retrieved = true;  ///< A trace shows what retrieval proposed: it is the client's own.
  /// The receipt (JSON) of a choice with these tokens; null where none was asked for.
  std::function<std::string(int choice, std::span<const Token> tokens, FinishReason finish)>
      receipt;
  std::function<void(WholeReply reply)> keep;  ///< Null where it is not to be kept.
};

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

/// One form in which clients ask for generations and are answered: OpenAI's chats, its completions,
/// another API's. All of them become an ApiRequest, and what comes of it goes out by a ReplyWriter.
struct Door {
  std::string_view path;       ///< The path of its POST requests.
  std::string_view id_prefix;  ///< The beginning of its replies' ids: "chatcmpl-".
  std::string_view prompt;     ///< Its name for the field with the prompt.
  std::string_view limit;      ///< Its name for the field with the most tokens of output.

  /// Reads a body. A pure function: an error is one sentence, its `field` the one at fault.
  Result<ApiRequest> (*read)(std::string_view body, const ApiDefaults& defaults);
  /// The writer for a request, which outlives it.
  std::unique_ptr<ReplyWriter> (*writer)(const ApiRequest& request, ReplyHead head,
                                         const Tokenizer* tokenizer);
  /// The body of an answer that is an error.
  std::string (*error)(const ApiError& error);
  /// The content type of answers that stream.
  std::string_view stream_type = "text/event-stream";
};

}  // namespace foretoken::server
