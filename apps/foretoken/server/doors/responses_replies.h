#pragma once

#include <memory>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// OpenAI's responses, whole or as events, as the request wants them.
std::unique_ptr<ReplyWriter> ResponseItemsWriter(const ApiRequest& request, ReplyHead head,
                                                 const Tokenizer* tokenizer);

}  // namespace foretoken::server
