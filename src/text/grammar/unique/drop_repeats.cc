#include "text/grammar/unique/drop_repeats.h"

#include <algorithm>
#include <bitset>
#include <string_view>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

using State = StateGraph::State;

constexpr std::string_view kSpaces = " \n\r\t";
constexpr std::int64_t kComparisonsPerStep = 8;

// One mask at hand.
class Walk {
 public:
  Walk(const TokenTrie& trie, StateGraph* graph, State state, UniqueLists* lists,
       std::span<std::uint64_t> bits)
      : trie_(trie), graph_(*graph), state_(state), lists_(*lists), bits_(bits) {}

  std::int64_t steps() const { return steps_; }

  // Takes out those of `tokens` that repeat an item or cannot but do so.
  void Check(std::span<const Token> tokens, bool skips_space) {
    for (const Token token : tokens) {
      if (!Has(token)) continue;
      std::string_view bytes = trie_.BytesOf(token);
      if (skips_space && bytes.starts_with(' ')) bytes.remove_prefix(1);
      if (!Fits(bytes)) TakeOut(token);
    }
  }

  // The same for all tokens that go on like an item that is there.
  void CheckAlike() {
    std::vector<std::string_view> rests = lists_.Continuations();
    std::ranges::sort(rests);
    std::vector<Token> tokens;
    AddAlike(rests, /*node=*/0, &tokens);
    Check(tokens, /*skips_space=*/false);
  }

 private:
  bool Has(Token token) const { return (bits_[Size(token) / 64] >> (token % 64) & 1) != 0; }
  void TakeOut(Token token) { bits_[Size(token) / 64] &= ~(std::uint64_t{1} << (token % 64)); }
  // False once the steps, with what it took to compare items meanwhile, are too many.
  bool Spend(std::int64_t steps) {
    compared_ += lists_.comparisons() - seen_comparisons_;
    seen_comparisons_ = lists_.comparisons();
    steps_ += steps + compared_ / kComparisonsPerStep;
    compared_ %= kComparisonsPerStep;
    return steps_ <= kMaxRepeatSteps;
  }

  bool Fits(std::string_view bytes) {
    const UniqueLists::Mark mark = lists_.mark();
    State state = state_;
    bool fits = true;
    for (std::size_t i = 0; i < bytes.size() && fits; ++i) {
      const auto byte = static_cast<std::uint8_t>(bytes[i]);
      const StateGraph::Transition taken = graph_.Follow(state, byte);
      state = taken.to;
      fits = Spend(taken.steps) && lists_.Push(byte, taken.begins_unique);
    }
    fits = fits && Spend(1) && (!lists_.MayRepeat() || CanDiffer(state));
    lists_.Return(mark);
    return fits;
  }

  // Whether the text can go on so that no item at hand is like one that is there. As soon as an
  // item differs from all, the grammar lets it end as one more.
  bool CanDiffer(State state) {
    const UniqueLists::Mark mark = lists_.mark();
    std::bitset<256> alike;  // How items that are there go on.
    for (const std::string_view rest : lists_.Continuations()) {
      if (!rest.empty()) alike.set(static_cast<std::uint8_t>(rest.front()));
    }
    std::vector<std::uint8_t> others;
    for (int value = 0; value < 256; ++value) {
      const auto byte = static_cast<std::uint8_t>(value);
      if (!lists_.in_string() && kSpaces.find(static_cast<char>(byte)) != kSpaces.npos) continue;
      const StateGraph::Transition taken = graph_.Follow(state, byte);
      if (taken.to == StateGraph::kDead) continue;
      if (!Spend(taken.steps)) return false;
      // Behind a comma there is another item.
      if (alike[byte] || (!lists_.in_string() && byte == ',')) {
        others.push_back(byte);
        continue;
      }
      const bool differs = lists_.Push(byte, taken.begins_unique);
      lists_.Return(mark);
      if (differs) return true;
    }
    for (const std::uint8_t byte : others) {
      const StateGraph::Transition taken = graph_.Follow(state, byte);
      const bool can = lists_.Push(byte, taken.begins_unique) && Spend(1) &&
                       (!lists_.MayRepeat() || CanDiffer(taken.to));
      lists_.Return(mark);
      if (can) return true;
    }
    return false;
  }

  // Adds the tokens below `node` that are beginnings of one of `rests`, which are sorted, or would
  // be without spaces.
  void AddAlike(std::span<const std::string_view> rests, int node, std::vector<Token>* tokens) {
    const int end = trie_.at(node).end;
    for (int child = node + 1; child < end; child = trie_.at(child).end) {
      const char byte = static_cast<char>(trie_.at(child).byte);
      std::vector<std::string_view> on;
      const auto first = std::ranges::lower_bound(rests, std::string_view(&byte, 1));
      for (auto rest = first; rest != rests.end() && rest->starts_with(byte); ++rest) {
        on.push_back(rest->substr(1));
      }
      if (kSpaces.find(byte) != kSpaces.npos) {
        on.insert(on.end(), rests.begin(), rests.end());
        std::ranges::sort(on);
      }
      if (on.empty()) continue;
      if (!Spend(std::ssize(on))) return;
      const auto own = trie_.tokens(child);
      tokens->insert(tokens->end(), own.begin(), own.end());
      AddAlike(on, child, tokens);
    }
  }

  const TokenTrie& trie_;
  StateGraph& graph_;
  const State state_;
  UniqueLists& lists_;
  std::span<std::uint64_t> bits_;
  std::int64_t steps_ = 0;
  std::int64_t seen_comparisons_ = lists_.comparisons();
  std::int64_t compared_ = 0;  // Not counted as a step yet.
};

}  // namespace

RepeatTokens::RepeatTokens(const TokenTrie& trie) {
  for (Token token = 0; token < trie.vocabulary(); ++token) {
    const std::string_view bytes = trie.BytesOf(token);
    if (bytes.empty()) continue;
    const bool has_quote = bytes.find('"') != bytes.npos;
    const bool ends =
        bytes.find_first_of(",]}") != bytes.npos || bytes.find_first_not_of(kSpaces) == bytes.npos;
    if (has_quote) quotes.push_back(token);
    if (!has_quote && ends) others.push_back(token);
    const std::size_t bracket = bytes.find('[');
    if (bracket != bytes.npos && bytes.find(',', bracket) != bytes.npos) lists.push_back(token);
  }
  for (std::vector<Token>* tokens : {&quotes, &others, &lists}) {
    std::ranges::stable_sort(*tokens, {}, [&](Token token) { return trie.BytesOf(token).size(); });
  }
}

std::int64_t DropRepeats(const TokenTrie& trie, const RepeatTokens& tokens, StateGraph* graph,
                         State state, bool skips_space, UniqueLists* lists,
                         std::span<std::uint64_t> bits) {
  Walk walk(trie, graph, state, lists, bits);
  if (!lists->open()) {
    walk.Check(tokens.lists, skips_space);
  } else {
    walk.CheckAlike();
    walk.Check(tokens.quotes, skips_space);
    if (!lists->in_string()) walk.Check(tokens.others, skips_space);
  }
  return walk.steps();
}

}  // namespace foretoken
