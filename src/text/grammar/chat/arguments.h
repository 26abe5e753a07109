#pragma once

#include <string_view>

#include "foretoken/chat_format.h"
#include "text/grammar/grammar.h"

namespace foretoken {

/// Adds the rules of a grammar (ParseGrammar's notation) to `grammar`, and returns its root.
Result<Expression> Include(std::string_view text, Grammar* grammar);

/// A call's arguments as a form writes them, held to the function's schema. Refuses a schema that
/// they cannot be held to, by the function's name.
Result<Expression> Arguments(const CallForm& form, const ChatTool& tool, Grammar* grammar);

}  // namespace foretoken
