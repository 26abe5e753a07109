#pragma once

#include <span>

#include "core/backend/backend.h"
#include "foretoken/types.h"

namespace foretoken {

/// The best.size() tokens of highest logits, descending (ties: lower ids first); returns how many
/// there are: those of NaN and -inf are none. Where the row has the maxima of its groups, reads the
/// groups that can have one and no others. Pure; allocates nothing.
int TopTokens(Logits row, int vocabulary, std::span<Token> best);

}  // namespace foretoken
