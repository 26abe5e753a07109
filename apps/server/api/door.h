#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/api/api_json.h"
#include "server/api/api_request.h"

namespace foretoken::server {

/// One form in which clients ask for generations and are answered: OpenAI's chats, its completions,
/// another API's. All of them become an ApiRequest, and what comes of it goes out by a ReplyWriter.
struct Door {
  std::string_view path;       ///< Of its POST requests.
  std::string_view id_prefix;  ///< Of its replies' ids: "chatcmpl-".
  std::string_view prompt;     ///< What it calls the field with the prompt,
  std::string_view limit;      ///< and the one with the most tokens of output.

  /// Reads a body. A pure function: an error is one sentence, its `field` the one at fault.
  Result<ApiRequest> (*read)(std::string_view body, const ApiDefaults& defaults);
  /// The writer for a request, which outlives it.
  std::unique_ptr<ReplyWriter> (*writer)(const ApiRequest& request, ReplyHead head,
                                         const Tokenizer* tokenizer);
  /// The body of an answer that is an error.
  std::string (*error)(const ApiError& error);
  /// Of answers that stream.
  std::string_view stream_type = "text/event-stream";
};

/// OpenAI's chats and completions.
const Door& ChatDoor();
const Door& CompletionDoor();

}  // namespace foretoken::server
