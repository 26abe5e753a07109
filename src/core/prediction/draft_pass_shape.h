#pragma once

#include <algorithm>

namespace foretoken {

/// How a draft model's passes say a proposal: what of ParallelSpec its cost depends on.
struct DraftPassShape {
  int positions = 1;  ///< Tokens that a pass says, at most; 1: those of one depth.
  int block = 0;      ///< Rows of a pass, however few tokens are wanted; 0: a row each.
  /// Rows behind an outcome begin at the root of what is verified, whose states are there, and say
  /// the fewer tokens the deeper the outcome lies.
  bool from_root = false;

  bool several() const { return positions > 1; }
  /// Tokens of a chain that is planned to have `lookahead`.
  int Longest(int lookahead) const {
    return several() ? std::min(lookahead, positions) : lookahead;
  }
  /// How many passes a chain of `lookahead` tokens takes.
  int Count(int lookahead) const { return several() ? 1 : lookahead; }
  /// How many rows each pass of such a chain has.
  int Rows(int lookahead) const { return block > 0 ? block : several() ? Longest(lookahead) : 1; }
  /// Tokens that a chain behind an outcome at `depth` has at most.
  int LongestBehind(int depth, int lookahead) const {
    return from_root ? std::min(lookahead, std::max(positions - 1 - depth, 0)) : Longest(lookahead);
  }

  bool operator==(const DraftPassShape&) const = default;
};

}  // namespace foretoken
