#pragma once

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// Ollama's chats and generations, streamed as lines of JSON unless a request says otherwise.
const Door& OllamaChatDoor();
const Door& OllamaGenerateDoor();

/// The name without the tag ":latest", which is no part of the names here.
std::string_view WithoutTag(std::string_view model);

/// A time as Ollama writes it: 2026-11-24T07:05:00Z.
std::string OllamaTime(std::int64_t seconds);

}  // namespace foretoken::server
