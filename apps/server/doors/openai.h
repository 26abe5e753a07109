#pragma once

#include "server/api/door.h"

namespace foretoken::server {

/// OpenAI's chats and completions.
const Door& ChatDoor();
const Door& CompletionDoor();

}  // namespace foretoken::server
