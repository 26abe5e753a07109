#pragma once

#include <span>
#include <string>

#include "server/doors/openai.h"
#include "server/http/http_connection.h"
#include "server/service.h"

namespace foretoken::server {

HttpReply JsonReply(const OrderedJson& json);
HttpReply ErrorReply(const ApiError& error, const Door& door = ChatDoor());
/// Says in a header which fields of the request meant nothing, so that a misspelt one is found.
void NameIgnored(std::span<const std::string> ignored, HttpReply* reply);

/// Has `service` generate what the request's body asks for, and answers as the tokens come, in the
/// form of `door`, which outlives the answer. May
/// block while the request is read and tokenised: for a thread of the work pool.
void ReplyToGeneration(const Door& door, Service* service, const Caller& caller,
                       const HttpRequest& request, const HttpExchange& exchange);

}  // namespace foretoken::server
