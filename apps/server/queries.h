#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "server/http/http_message.h"
#include "server/service.h"

namespace foretoken::server {

// What clients of other APIs ask besides generations, once the model is served.

struct QueryReply {
  OrderedJson json;
  std::vector<std::string> ignored;  ///< Fields that were sent and mean nothing here.
};
using QueryAnswer = std::variant<QueryReply, ApiError>;
using Query = std::function<QueryAnswer(const Service& service, const HttpRequest& request)>;

/// Anthropic's: how many tokens a chat is.
QueryAnswer CountTokens(const Service& service, const HttpRequest& request);

/// llama.cpp's: the places of the batch, and which are taken; with the query `fail_on_no_slot=1` an
/// error where all are.
QueryAnswer Slots(const Service& service, const HttpRequest& request);
/// ... and a chat as the text that the model reads.
QueryAnswer ApplyTemplate(const Service& service, const HttpRequest& request);

/// Ollama's: the models there are, and what is known of one.
QueryAnswer OllamaTags(const Service& service, const HttpRequest& request);
QueryAnswer OllamaShow(const Service& service, const HttpRequest& request);

}  // namespace foretoken::server
