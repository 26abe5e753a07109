#pragma once

#include <vector>

#include "server/api/door.h"

namespace foretoken::server {

/// OpenAI's responses, whole or streamed. Nothing is stored: each request has its whole input.
const Door& ResponsesDoor();

/// The turns of a chat that items of an output are.
std::vector<ChatMessage> TurnsOfOutput(const OrderedJson& output);

}  // namespace foretoken::server
