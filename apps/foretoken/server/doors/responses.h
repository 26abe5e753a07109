#pragma once

#include <vector>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// OpenAI's responses, whole or streamed.
const Door& ResponsesDoor();

/// The turns of a chat that items of an output are.
std::vector<ChatMessage> TurnsOfOutput(const Json& output);

}  // namespace foretoken::server
