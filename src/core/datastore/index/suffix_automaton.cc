#include "core/datastore/index/suffix_automaton.h"

#include "base/check.h"

namespace foretoken {
namespace {

constexpr std::size_t kFirstEdgeSlots = 64;

}  // namespace

SuffixAutomaton::SuffixAutomaton() : states_(1), edges_(1), slots_(kFirstEdgeSlots) {}

void SuffixAutomaton::Clear() {
  states_.assign(1, {});
  edges_.resize(1);
  std::ranges::fill(slots_, 0);
  last_ = kRoot;
}

void SuffixAutomaton::Append(Token token) {
  FT_CHECK(token >= 0, "token {}", token);
  last_ = Follow(last_, token) != kRoot ? StateBehind(last_, token) : Extend(token);
  std::uint32_t state = last_;
  for (int i = 0; i < kCountedStates && state != kRoot; ++i) {
    ++states_[state].count;
    state = states_[state].link;
  }
  ++states_[kRoot].count;
}

// The state of the text and `token`, a string that has not occurred.
std::uint32_t SuffixAutomaton::Extend(Token token) {
  const std::uint32_t whole = AddState({.length = states_[last_].length + 1});
  std::uint32_t suffix = last_;
  for (; suffix != kNone && Follow(suffix, token) == kRoot; suffix = states_[suffix].link) {
    AddEdge(suffix, token, whole);
  }
  const std::uint32_t link = suffix == kNone ? kRoot : StateBehind(suffix, token);
  states_[whole].link = link;
  return whole;
}

// The state whose longest string is the longest of `from` and `token` behind it, which has
// occurred. If the state stands for longer strings as well, it is split: the new state takes the
// strings of this length and shorter ones, which from now on may occur more often than the longer
// ones.
std::uint32_t SuffixAutomaton::StateBehind(std::uint32_t from, Token token) {
  const std::uint32_t longer = Follow(from, token);
  const std::uint32_t length = states_[from].length + 1;
  if (states_[longer].length == length) return longer;
  const State old = states_[longer];
  const std::uint32_t parted = AddState({.link = old.link, .length = length, .count = old.count});
  for (std::uint32_t edge = old.first_edge; edge != 0; edge = edges_[edge].next) {
    AddEdge(parted, edges_[edge].token, edges_[edge].to);
  }
  states_[longer].link = parted;
  for (; from != kNone && Follow(from, token) == longer; from = states_[from].link) {
    edges_[slots_[Probe(from, token)]].to = parted;
  }
  return parted;
}

SuffixAutomaton::Match SuffixAutomaton::LongestSuffix(std::span<const Token> context) const {
  Match match;
  for (const Token token : context) {
    std::uint32_t next = Follow(match.state, token);
    while (next == kRoot && match.state != kRoot) {
      match.state = states_[match.state].link;
      match.length = length(match.state);
      next = Follow(match.state, token);
    }
    match = next == kRoot ? Match{} : Match{next, match.length + 1};
  }
  return match;
}

std::uint32_t SuffixAutomaton::AddState(const State& state) {
  FT_CHECK(states_.size() < kNone, "a suffix automaton of {} states", states_.size());
  states_.push_back(state);
  return static_cast<std::uint32_t>(states_.size() - 1);
}

void SuffixAutomaton::AddEdge(std::uint32_t from, Token token, std::uint32_t to) {
  if (2 * edges_.size() > slots_.size()) Grow();
  const auto edge = static_cast<std::uint32_t>(edges_.size());
  slots_[Probe(from, token)] = edge;
  edges_.push_back({.token = token, .from = from, .to = to, .next = states_[from].first_edge});
  states_[from].first_edge = edge;
}

std::uint32_t SuffixAutomaton::Follow(std::uint32_t from, Token token) const {
  return edges_[slots_[Probe(from, token)]].to;
}

// The slot of the edge, or the free one where it would go.
std::size_t SuffixAutomaton::Probe(std::uint32_t from, Token token) const {
  const std::uint64_t key = std::uint64_t{from} << 32 | static_cast<std::uint32_t>(token);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = (key * 0x9E3779B97F4A7C15U >> 29) & mask;
  while (slots_[slot] != 0) {
    const Edge& edge = edges_[slots_[slot]];
    if (edge.from == from && edge.token == token) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void SuffixAutomaton::Grow() {
  slots_.assign(2 * slots_.size(), 0);
  for (std::uint32_t edge = 1; edge < edges_.size(); ++edge) {
    slots_[Probe(edges_[edge].from, edges_[edge].token)] = edge;
  }
}

}  // namespace foretoken
