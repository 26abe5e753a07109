#pragma once

#include <memory>

#include "core/draft/text/text_link.h"
#include "foretoken/tokenizer.h"

namespace foretoken {

/// Links a target to a draft by their tokenizers (TextPair).
std::shared_ptr<const TextLink> LinkByText(std::shared_ptr<const Tokenizer> target,
                                           std::shared_ptr<const Tokenizer> draft);

}  // namespace foretoken
