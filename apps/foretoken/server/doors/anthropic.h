#pragma once

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// Anthropic's messages, whole or streamed.
const Door& AnthropicDoor();

/// The body of /v1/messages/count_tokens: the chat whose tokens are to be counted.
Result<ApiRequest> ReadCountTokens(std::string_view body, const ApiDefaults& defaults);

}  // namespace foretoken::server
