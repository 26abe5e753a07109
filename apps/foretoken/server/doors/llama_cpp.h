#pragma once

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// The completions of llama.cpp's own server.
const Door& LlamaCppDoor();

/// The infill of llama.cpp's server: a gap in a text is filled.
const Door& LlamaCppInfillDoor();

/// The body of /apply-template: the chat to be written out.
Result<ApiRequest> ReadApplyTemplate(std::string_view body, const ApiDefaults& defaults);

}  // namespace foretoken::server
