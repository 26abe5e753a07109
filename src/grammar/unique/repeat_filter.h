#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretoken/types.h"
#include "grammar/state_graph.h"
#include "grammar/token_trie.h"
#include "grammar/unique/unique_lists.h"

namespace foretoken {

/// Takes out of a grammar's masks the tokens with which an item of a UniqueLists' list would be
/// there twice, or could only become one that is there.
class RepeatFilter {
 public:
  /// Of one mask. Where more would be needed, tokens that were not looked at are taken out, too.
  static constexpr std::int64_t kMaxSteps = 1 << 20;

  /// `trie` outlives the filter.
  explicit RepeatFilter(const TokenTrie* trie);

  /// `bits` are the mask of `state`, where `lists` stand; `skips_space`: the first space of a token
  /// is not shown. Returns the steps that it took, which depend on nothing else. `lists` is as it
  /// was afterwards.
  std::int64_t Filter(StateGraph* graph, StateGraph::State state, bool skips_space,
                      UniqueLists* lists, std::span<std::uint64_t> bits) const;

 private:
  const TokenTrie* trie_;
  // By what a token holds that may end an item: where a string is open, only quotes do.
  std::vector<Token> quotes_;
  std::vector<Token> others_;
  std::vector<Token> lists_;  // A list and more than one item: those may differ where none is open.
};

}  // namespace foretoken
