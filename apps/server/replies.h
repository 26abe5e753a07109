#pragma once

#include "server/http_server.h"
#include "server/service.h"

namespace foretoken::server {

/// Sets an error as the reply.
void ReplyError(const ApiError& error, httplib::Response* response);

/// Answers /v1/chat/completions or /v1/completions: all at once, or as a stream of server-sent
/// events. A client that goes away ends its request. `in_flight` counts replies not yet written.
void ReplyToGeneration(ApiKind kind, Service* service, std::atomic<int>* in_flight,
                       const httplib::Request& request, httplib::Response* response);

}  // namespace foretoken::server
