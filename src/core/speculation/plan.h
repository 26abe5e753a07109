#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "core/speculation/proposal.h"
#include "foretoken/speculation.h"

namespace foretoken {

/// Bonus tokens prepared for one outcome node where nothing else is asked for.
inline constexpr int kDefaultFanout = 3;
/// The draft's candidates after one node, at most: its children, and bonus tokens beyond them.
inline constexpr int kMaxRanking = kMaxTreeWidth + kMaxFanout;

/// F_k: bonus tokens prepared for outcome node k = 0..K of a proposal (Section 4.1 of the paper).
struct FanoutShape {
  StaticVector<std::uint8_t, kMaxProposal + 1> at;
  /// The shape hands out a budget: what it has for nodes that a shorter proposal lacks goes to that
  /// one's end. (An empty proposal has but one outcome node; with F_K alone, often 0 or 1 after a
  /// fallback, nine of ten lookups missed there.)
  bool spends_budget = false;

  /// B, the speculation cache's size in branches.
  int budget() const {
    int total = 0;
    for (const int fanout : at) total += fanout;
    return total;
  }
  /// At node `k` = 0 .. `length` of a chain of `length` <= K tokens, whose end counts as k = K.
  int At(int k, int length) const {
    if (k < length) return at[k];
    int end = at.back();
    const int last = std::ssize(at) - 1;
    for (int lacking = length; spends_budget && lacking < last; ++lacking) end += at[lacking];
    return std::min(end, kMaxFanout);
  }
  /// The most at node `k` <= K of a proposal of any length.
  int Most(int k) const { return std::max<int>(at[k], At(k, k)); }
  int widest() const {
    int widest = 0;
    for (const int fanout : at) widest = std::max(widest, fanout);
    return widest;
  }
  friend bool operator==(const FanoutShape&, const FanoutShape&) = default;
};

/// What `shape` has for an outcome at `node` of `proposal`: F_k of its depth at a node with
/// children, F_K at a leaf, however short the path to it; at the end of a chain as FanoutShape::At
/// says.
int FanoutAt(const FanoutShape& shape, const Proposal& proposal, int node);

/// F at every node of a proposal of `lookahead` tokens.
FanoutShape UniformFanout(int fanout, int lookahead);

/// `budget` branches over the nodes as equally as whole numbers allow, early nodes first; what
/// kMaxFanout at every node cannot hold is cut.
FanoutShape EvenFanout(int budget, int lookahead);

/// With the root a pass of 32 rows.
inline constexpr int kDefaultTreeNodes = 31;

/// kAutoSpeculationLength and kKneeSpeculationLength at most, as in the paper.
inline constexpr int kMaxAutoSpeculationLength = 32;

/// How one sequence speculates until another plan replaces this one. What is emitted does not
/// depend on it under shared-noise verification.
struct SpeculationPlan {
  Mode mode = Mode::kAr;
  int lookahead = 6;   ///< K: proposal tokens per round along one path.
  int tree_width = 1;  ///< Children per proposal node, at most; 1 is a chain.
  /// The proposal tokens of a tree per round on all paths; left out: kDefaultTreeNodes, or the
  /// lookahead where that is more.
  std::optional<int> max_nodes;
  /// s_q: rows per sequence and pass in modes that retrieve and in the retrieval of mode kSsd with
  /// fallback kRetrieval, the root among them; or kAutoSpeculationLength or kKneeSpeculationLength.
  /// Left out: lookahead + 1, and for that fallback as many as pay.
  std::optional<int> speculation_length;
  int window = 5;   ///< W of mode lookahead.
  int guesses = 5;  ///< G of mode lookahead.
  Fallback fallback = Fallback::kJit;
  FanoutShape primary;         ///< After a proposal from the speculation cache.
  FanoutShape after_fallback;  ///< After a fallback's proposal (Theorem 18).
  /// C of Definition 14, in [0, 1]: the draft's F_k likeliest tokens are drawn C times as often, so
  /// that the bonus token is more often one of them. Mode kSsd under rejection verification only.
  float saguaro_c = 1;
  /// Which bonus tokens the cache prepares. Mode kSsd under rejection verification only.
  CacheOrder cache_order = CacheOrder::kNoise;
  /// The planner hands the budget of `primary` out anew as it learns, after a fallback's proposal
  /// too. Mode kSsd with chains only.
  FanoutRule fanout = FanoutRule::kGiven;

  /// The most proposal tokens per round.
  int nodes() const {
    if (Retrieves(mode) && speculation_length.has_value()) return RetrievedNodes();
    if (mode.drafts() && InfoOf(mode.drafter).shape == ProposalShape::kWindow) {
      return (window + guesses) * lookahead;
    }
    if (tree_width == 1) return lookahead;
    return max_nodes.value_or(std::max(lookahead, kDefaultTreeNodes));
  }

  /// The most proposal tokens per round that a mode which retrieves would have, whatever the plan's
  /// mode, or the fallback of mode kSsd.
  int RetrievedNodes() const {
    if (measures_length()) return kMaxAutoSpeculationLength - 1;
    if (speculation_length.has_value()) return *speculation_length - 1;
    return FallsBackOnRetrieval() ? kMaxAutoSpeculationLength - 1 : lookahead;
  }

  /// Whether the speculation length is one that follows from the measured times of passes.
  bool measures_length() const {
    return speculation_length == kAutoSpeculationLength ||
           speculation_length == kKneeSpeculationLength;
  }

  /// Whether misses of the speculation cache are answered by retrieval.
  bool FallsBackOnRetrieval() const { return mode.during() && fallback == Fallback::kRetrieval; }

  /// Whether it leaves something to the planner. What the planner makes of it does not.
  bool open() const {
    return mode.planned() ||
           (mode.during() && (fanout != FanoutRule::kGiven || fallback == Fallback::kAuto));
  }

  friend bool operator==(const SpeculationPlan&, const SpeculationPlan&) = default;
};

}  // namespace foretoken
