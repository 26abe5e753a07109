#pragma once

#include <algorithm>

#include "base/static_vector.h"
#include "core/speculation/plan.h"
#include "foretoken/types.h"

namespace foretoken {

/// A token that the draft ranks, and what its scores say of it.
struct RankedToken {
  Token token = -1;
  /// The logarithm of the odds, by the draft's scores, that the target chooses this token and none
  /// of the others that were ranked with it; 0 of drawn tokens, whose chances nothing here uses. Of
  /// the first one what the draft's confidence head says, where it has one.
  float log_odds = 0;
};

/// The draft's best tokens after some node, best first, under the shared noise of that position.
using Ranking = StaticVector<RankedToken, kMaxRanking>;

/// The place of `token` in `ranking`; -1 where it is not there.
inline int RankOf(const Ranking& ranking, Token token) {
  const auto* at = std::ranges::find(ranking, token, &RankedToken::token);
  return at == ranking.end() ? -1 : static_cast<int>(at - ranking.begin());
}

}  // namespace foretoken
