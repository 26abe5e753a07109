#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretoken/types.h"

namespace foretoken {

/// The strings of one text or of several, of any length, with how often each occurs: a suffix
/// automaton (Blumer et al., 1985), which grows by at most two states and three edges a token and
/// needs constant time for each, taken over all. A state stands for those strings that occur at the
/// same places, each a suffix of the next longer one. Not thread-safe; allocates only when it grows
/// beyond what it has been.
class SuffixAutomaton {
 public:
  /// The state of the empty string. No edge leads to it, so as an answer it means none.
  static constexpr std::uint32_t kRoot = 0;

  /// What LongestSuffix found.
  struct Match {
    std::uint32_t state = kRoot;
    int length = 0;
  };

  SuffixAutomaton();

  void Append(Token token);
  /// What follows belongs to another text.
  void Break() { last_ = kRoot; }
  /// Forgets everything but keeps the memory.
  void Clear();

  /// Tokens so far.
  std::size_t tokens() const { return states_[kRoot].count; }

  /// The longest suffix of `context` that occurs.
  Match LongestSuffix(std::span<const Token> context) const;
  /// The state of the longest suffix of a state's strings that also occurs elsewhere; of kRoot
  /// nothing may be asked.
  std::uint32_t Link(std::uint32_t state) const { return states_[state].link; }
  /// Tokens of the longest string of a state.
  int length(std::uint32_t state) const { return states_[state].length; }
  /// How often the strings of a state occur. In texts that repeat themselves at once, over and
  /// over, short strings are counted less often than that (kCountedStates).
  std::uint32_t count(std::uint32_t state) const { return states_[state].count; }
  /// Calls visit(state, token, count) for every token that follows the strings of `parent`, with
  /// the state of these strings and that token.
  template <typename Visitor>
  void VisitChildren(std::uint32_t parent, Visitor&& visit) const {
    for (std::uint32_t edge = states_[parent].first_edge; edge != 0; edge = edges_[edge].next) {
      const std::uint32_t child = edges_[edge].to;
      visit(child, edges_[edge].token, std::min(count(child), count(parent)));
    }
  }

 private:
  // A token counts for this many states at most, of the longest strings that end with it: those of
  // a text that is one token over and over are as many as its tokens.
  static constexpr int kCountedStates = 64;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct State {
    std::uint32_t link = kNone;
    std::uint32_t length = 0;
    std::uint32_t count = 0;
    std::uint32_t first_edge = 0;
  };
  struct Edge {
    Token token = -1;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t next = 0;  // The next edge of the same state.
  };

  std::uint32_t AddState(const State& state);
  void AddEdge(std::uint32_t from, Token token, std::uint32_t to);
  std::uint32_t Follow(std::uint32_t from, Token token) const;
  std::uint32_t Extend(Token token);
  std::uint32_t StateBehind(std::uint32_t from, Token token);
  std::size_t Probe(std::uint32_t from, Token token) const;
  void Grow();

  std::vector<State> states_;
  std::vector<Edge> edges_;           // The first is none.
  std::vector<std::uint32_t> slots_;  // Edges by (from, token), linear probing; 0: free.
  std::uint32_t last_ = kRoot;        // The state of the whole text so far.
};

}  // namespace foretoken
