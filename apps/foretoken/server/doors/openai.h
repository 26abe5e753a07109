#pragma once

#include <string>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// OpenAI's chats and completions.
const Door& ChatDoor();
const Door& CompletionDoor();

/// The body of an error, as all doors of OpenAI's have it.
std::string OpenAiError(const ApiError& error);

}  // namespace foretoken::server
