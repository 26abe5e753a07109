#pragma once

#include <memory>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// Replies of OpenAI's chats and completions, whole or as events, as the request wants them.
std::unique_ptr<ReplyWriter> OpenAiWriter(const ApiRequest& request, ReplyHead head,
                                          const Tokenizer* tokenizer);

}  // namespace foretoken::server
