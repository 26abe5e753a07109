#pragma once

#include <memory>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// Replies of Anthropic's messages, whole or as events, as the request wants them.
std::unique_ptr<ReplyWriter> AnthropicWriter(const ApiRequest& request, ReplyHead head,
                                             const Tokenizer* tokenizer);

}  // namespace foretoken::server
