#pragma once

#include <string>

#include "base/result.h"
#include "foretoken/chat_format.h"
#include "text/grammar/grammar.h"

namespace foretoken {

/// Arguments that match `schema` (JSON) as CallBody::kGemma has them: {key:value,...}, keys without
/// quotes and in the order of their declaration, strings between marks. Adds rules to `grammar`.
/// Refuses what it cannot hold them to, in one sentence.
Result<Expression> GemmaArguments(const CallForm& form, const std::string& schema,
                                  Grammar* grammar);

}  // namespace foretoken
