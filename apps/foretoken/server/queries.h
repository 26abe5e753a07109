#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "apps/foretoken/server/http/http_message.h"
#include "apps/foretoken/server/models/model_cards.h"
#include "apps/foretoken/server/models/model_registry.h"
#include "apps/foretoken/server/service.h"

namespace foretoken::server {

// What clients ask besides generations.

struct QueryReply {
  std::string body;                  ///< JSON.
  std::vector<std::string> ignored;  ///< Fields that were sent and mean nothing here.
};
using QueryAnswer = std::variant<QueryReply, ApiError>;
/// An error in the form of `door`.
HttpReply ReplyOf(const QueryAnswer& answer, const Door& door);

// Questions about a loaded model.

using Query = std::function<QueryAnswer(const Service& service, const HttpRequest& request)>;

/// Tokens of a text, and the text of tokens.
QueryAnswer Tokenize(const Service& service, const HttpRequest& request);
QueryAnswer Detokenize(const Service& service, const HttpRequest& request);

/// Anthropic's: how many tokens a chat is.
QueryAnswer CountTokens(const Service& service, const HttpRequest& request);

/// llama.cpp's: the places of the batch, and which are taken; with the query `fail_on_no_slot=1` an
/// error where all are.
QueryAnswer Slots(const Service& service, const HttpRequest& request);
/// llama.cpp's: saves the text of a slot, restores it or forgets it.
QueryAnswer ActOnSlot(Service& service, const HttpHead& head, const SlotAction& action);
/// llama.cpp's: the adapters that requests may ask for, with the scales that they have by default.
QueryAnswer LoraAdapters(const Service& service, const HttpRequest& request);
/// llama.cpp's: a chat as the text that the model reads.
QueryAnswer ApplyTemplate(const Service& service, const HttpRequest& request);

/// What requests may ask for, and what they get that do not.
Json PropsJson(const Service& service);

// Questions about all models, loaded or not; `since`, in seconds since 1970, is when they began to
// be served.

/// OpenAI's: one model.
Json ModelJson(const ModelRegistry& models, ModelRegistry::Index model, std::int64_t since);
/// All of them.
Json ModelsJson(const ModelRegistry& models, std::int64_t since);
/// Ollama's: the models there are, those that are loaded, and what is known of one.
Json OllamaTags(const ModelRegistry& models, ModelCards* cards, std::int64_t since);
Json OllamaRunning(const ModelRegistry& models, ModelCards* cards);
QueryAnswer OllamaShow(const ModelRegistry& models, ModelCards* cards, std::int64_t since,
                       const HttpRequest& request);
/// Ollama's answers to who wants to have a model fetched: it is there, or nobody may.
HttpReply OllamaPulled(bool stream);
ApiError PullsForbidden(const std::string& model);

}  // namespace foretoken::server
