#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "apps/foretoken/server/doors/doors.h"
#include "apps/foretoken/server/http/http_exchange.h"
#include "apps/foretoken/server/models/model_registry.h"
#include "apps/foretoken/server/service.h"
#include "apps/foretoken/server/work_pool.h"

namespace foretoken::server {

HttpReply JsonReply(const Json& json);
HttpReply ErrorReply(const ApiError& error, const Door& door = ChatDoor());
/// Says in a header which fields of the request meant nothing, so that a misspelt one is found.
void NameIgnored(std::span<const std::string> ignored, HttpReply* reply);

/// Has `service` generate what the body of a request that came at `arrived` asks for, and answers
/// as the tokens come, in the form of `door`, which outlives the answer; long parts of it are
/// written on `pool`. May block while the request is read and tokenised: for a thread of the work
/// pool.
void ReplyToGeneration(const Door& door, const ModelRegistry::Lease& service, const Caller& caller,
                       const std::shared_ptr<const HttpRequest>& request,
                       std::chrono::steady_clock::time_point arrived, WorkPool* pool,
                       const HttpExchange& exchange);

}  // namespace foretoken::server
