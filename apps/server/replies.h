#pragma once

#include "server/http/http_connection.h"
#include "server/service.h"

namespace foretoken::server {

HttpReply JsonReply(const OrderedJson& json);
HttpReply ErrorReply(const ApiError& error);

/// Has `service` generate what the request's body asks for, and answers as the tokens come. May
/// block while the request is read and tokenised: for a thread of the work pool.
void ReplyToGeneration(ApiKind kind, Service* service, const HttpRequest& request,
                       const HttpExchange& exchange);

}  // namespace foretoken::server
