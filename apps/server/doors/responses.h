#pragma once

#include "server/api/door.h"

namespace foretoken::server {

/// OpenAI's responses, whole or streamed. Nothing is stored: each request has its whole input.
const Door& ResponsesDoor();

}  // namespace foretoken::server
