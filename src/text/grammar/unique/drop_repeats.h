#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretoken/types.h"
#include "text/grammar/automaton/state_graph.h"
#include "text/grammar/tokens/token_trie.h"
#include "text/grammar/unique/unique_lists.h"

namespace foretoken {

/// The tokens of a vocabulary by what they hold that may end an item of a list, the shortest first.
struct RepeatTokens {
  explicit RepeatTokens(const TokenTrie& trie);

  std::vector<Token> quotes;  ///< A quote: nothing else ends an item that is an open string.
  std::vector<Token> others;  ///< None, but a comma, a closing bracket or nothing but spaces.
  std::vector<Token> lists;   ///< A list and more than one item.
};

/// The most steps of one mask. Where more would be needed, tokens that were not looked at are taken
/// out, too.
inline constexpr std::int64_t kMaxRepeatSteps = 1 << 19;

/// Takes out of `bits`, the mask of `state`, where `lists` stand, the tokens with which an item of
/// a list would be there twice, or could only become one that is there. `skips_space`: the first
/// space of a token is not shown. Returns the steps that it took, which depend on nothing else;
/// `lists` is afterwards as it was.
std::int64_t DropRepeats(const TokenTrie& trie, const RepeatTokens& tokens, StateGraph* graph,
                         StateGraph::State state, bool skips_space, UniqueLists* lists,
                         std::span<std::uint64_t> bits);

}  // namespace foretoken
