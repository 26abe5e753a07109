#include "text/grammar/regular/regular_language.h"

#include <algorithm>
#include <set>
#include <utility>

namespace foretoken {
namespace {

using Step = RegularLanguage::Step;

// Bounds what Minimize may take; a language is right without it.
constexpr std::size_t kMaxTransitions = 8'000'000;

// States by which texts lead from them into the language (Hopcroft's algorithm): all start in two
// blocks, and a block is split where some character leads from a part of it into another block.
class StatePartition {
 public:
  explicit StatePartition(std::span<const RegularLanguage::State> states)
      : count_(Int(states.size())), block_(count_, 0), order_(count_), place_(count_) {
    for (int i = 0; i < count_; ++i) order_[i] = place_[i] = i;
    blocks_.push_back({0, count_, 0});
    SortTransitions(states);
    for (int i = 0; i < count_; ++i) {
      if (states[i].accepts) Mark(i);
    }
    SplitMarked();
    waiting_.push_back(0);
  }

  std::vector<int> BlockOfEach() {
    if (classes_ == 0) {  // Too many: every state by itself.
      for (int i = 0; i < count_; ++i) block_[i] = i;
      return block_;
    }
    while (!waiting_.empty()) {
      const Block& next = blocks_[waiting_.back()];
      waiting_.pop_back();
      const std::vector<int> members(order_.begin() + next.begin, order_.begin() + next.end);
      for (std::size_t of = 0; of < classes_; ++of) {
        for (const int member : members) {
          const std::size_t key = of * count_ + member;
          for (int i = begins_[key]; i < begins_[key + 1]; ++i) Mark(sources_[i]);
        }
        SplitMarked();
      }
    }
    return block_;
  }

 private:
  struct Block {
    int begin, end;  // In order_.
    int marked;      // How many at its beginning are marked.
  };

  // By class of characters and target. Characters of one class are alike to all states.
  void SortTransitions(std::span<const RegularLanguage::State> states) {
    std::vector<std::uint32_t> ends;
    for (const auto& state : states) {
      for (const Step& step : state.steps) ends.push_back(step.last);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    if (ends.size() * states.size() > kMaxTransitions) return;
    classes_ = ends.size();
    const auto visit = [&](auto use) {
      for (int i = 0; i < count_; ++i) {
        std::size_t of = 0;
        auto step = states[i].steps.begin();
        for (const std::uint32_t end : ends) {
          use(of++ * count_ + step->target, i);
          if (step->last == end) ++step;
        }
      }
    };
    begins_.assign(classes_ * count_ + 1, 0);
    sources_.resize(classes_ * count_);
    visit([&](std::size_t key, int) { ++begins_[key + 1]; });
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    std::vector<int> at(begins_.begin(), begins_.end() - 1);
    visit([&](std::size_t key, int source) { sources_[at[key]++] = source; });
  }

  void Mark(int state) {
    Block& in = blocks_[block_[state]];
    const int to = in.begin + in.marked;
    if (place_[state] < to) return;
    if (in.marked++ == 0) touched_.push_back(block_[state]);
    const int other = order_[to];
    std::swap(order_[to], order_[place_[state]]);
    place_[other] = place_[state];
    place_[state] = to;
  }

  // The smaller part of a split block becomes a new one.
  void SplitMarked() {
    for (const int split : touched_) {
      const Block was = blocks_[split];
      const int middle = was.begin + was.marked;
      blocks_[split].marked = 0;
      if (middle == was.end) continue;
      const bool first_is_smaller = was.marked < was.end - middle;
      const int added = blocks_.size();
      blocks_.push_back(first_is_smaller ? Block{was.begin, middle, 0} : Block{middle, was.end, 0});
      (first_is_smaller ? blocks_[split].begin : blocks_[split].end) = middle;
      for (int i = blocks_[added].begin; i < blocks_[added].end; ++i) block_[order_[i]] = added;
      waiting_.push_back(added);
    }
    touched_.clear();
  }

  const int count_;
  std::vector<int> block_;  // The block of each state.
  std::vector<int> order_;  // The states, block by block.
  std::vector<int> place_;  // The place of each state in order_.
  std::vector<Block> blocks_;
  std::vector<int> touched_;  // Blocks with marked states.
  std::vector<int> waiting_;  // Blocks by which others are still to be split.
  std::size_t classes_ = 0;
  std::vector<int> begins_;  // In sources_, by class and target.
  std::vector<int> sources_;
};

}  // namespace

Error RegularLanguage::TooLarge() {
  return Invalid("needs an automaton of more than {} states", kMaxStates);
}

Result<RegularLanguage> RegularLanguage::OfLength(int min, int max) {
  const int last = max < 0 ? min : max + 1;  // Where further characters change nothing.
  return Explore(
      0,
      [&](int count) {
        return std::vector{std::pair{kLastCodePoint, std::min(count + 1, last)}};
      },
      [&](int count) { return count >= min && (max < 0 || count <= max); });
}

Result<RegularLanguage> RegularLanguage::OfTexts(std::span<const std::string> texts) {
  // A state is what texts have in common so far: a range of the sorted texts and a depth.
  std::set<std::u32string> sorted;
  for (std::string_view rest : texts) {
    std::u32string codes;
    for (std::uint32_t code = 0; TakeUtf8(&rest, &code);) codes.push_back(code);
    sorted.insert(std::move(codes));
  }
  const std::vector<std::u32string> all(sorted.begin(), sorted.end());
  struct Range {
    std::size_t begin = 0, end = 0, depth = 0;
    auto operator<=>(const Range&) const = default;
  };
  const auto steps = [&](const Range& range) {
    std::vector<std::pair<std::uint32_t, Range>> list;
    std::uint32_t next = 0;
    for (std::size_t begin = range.begin; begin < range.end;) {
      if (all[begin].size() == range.depth) {
        ++begin;
        continue;
      }
      const std::uint32_t code = all[begin][range.depth];
      std::size_t end = begin;
      while (end < range.end && all[end][range.depth] == code) ++end;
      if (code > next) list.emplace_back(code - 1, Range{});
      list.emplace_back(code, Range{begin, end, range.depth + 1});
      next = code + 1;
      begin = end;
    }
    if (next <= kLastCodePoint) list.emplace_back(kLastCodePoint, Range{});
    return list;
  };
  return Explore(Range{0, all.size(), 0}, steps, [&](const Range& range) {
    return range.begin < range.end && all[range.begin].size() == range.depth;
  });
}

RegularLanguage RegularLanguage::Complement() const {
  RegularLanguage complement = *this;
  for (State& state : complement.states_) state.accepts = !state.accepts;
  return complement;
}

template <typename Accepts>
Result<RegularLanguage> RegularLanguage::Product(const RegularLanguage& a, const RegularLanguage& b,
                                                 Accepts accepts) {
  using Pair = std::pair<int, int>;
  // Where one side alone decides, for good, the other need not be followed.
  const auto decided = [](const RegularLanguage& language, int state) {
    const State& at = language.states_[state];
    return at.steps.size() == 1 && at.steps[0].target == state;
  };
  const auto reduced = [&](Pair pair) {
    const bool left = a.states_[pair.first].accepts;
    const bool right = b.states_[pair.second].accepts;
    if (decided(a, pair.first) && accepts(left, false) == accepts(left, true)) pair.second = -1;
    if (pair.second >= 0 && decided(b, pair.second) &&
        accepts(false, right) == accepts(true, right)) {
      pair.first = -1;
    }
    return pair;
  };
  const auto steps = [&](const Pair& pair) {
    std::vector<std::pair<std::uint32_t, Pair>> list;
    if (pair.first < 0 || pair.second < 0) {
      list.emplace_back(kLastCodePoint, pair);
      return list;
    }
    const auto& left = a.states_[pair.first].steps;
    const auto& right = b.states_[pair.second].steps;
    for (std::size_t i = 0, j = 0; i < left.size() && j < right.size();) {
      const std::uint32_t last = std::min(left[i].last, right[j].last);
      list.emplace_back(last, reduced({left[i].target, right[j].target}));
      const bool both = left[i].last == right[j].last;
      if (left[i].last == last) ++i;
      if (both || right[j].last == last) ++j;
    }
    return list;
  };
  return Explore(reduced({0, 0}), steps, [&](const Pair& pair) {
    return accepts(pair.first >= 0 && a.states_[pair.first].accepts,
                   pair.second >= 0 && b.states_[pair.second].accepts);
  });
}

Result<RegularLanguage> RegularLanguage::Intersect(const RegularLanguage& other) const {
  if (full()) return other;
  if (other.full()) return *this;
  return Product(*this, other, [](bool a, bool b) { return a && b; });
}

Result<RegularLanguage> RegularLanguage::Unite(const RegularLanguage& other) const {
  if (empty()) return other;
  if (other.empty()) return *this;
  return Product(*this, other, [](bool a, bool b) { return a || b; });
}

bool RegularLanguage::Has(std::string_view text) const {
  int state = 0;
  for (std::uint32_t code = 0; !text.empty();) {
    if (!TakeUtf8(&text, &code)) return false;
    const auto& steps = states_[state].steps;
    state =
        std::lower_bound(steps.begin(), steps.end(), code,
                         [](const Step& step, std::uint32_t wanted) { return step.last < wanted; })
            ->target;
  }
  return states_[state].accepts;
}

std::optional<std::vector<std::string>> RegularLanguage::Texts(std::size_t most) const {
  const std::vector<bool> live = LiveStates();
  std::vector<bool> open(states_.size(), false);
  std::string text;
  std::vector<std::string> texts;
  if (live[0] && !AddTexts(0, live, most, &open, &text, &texts)) return std::nullopt;
  return texts;
}

// `open` has the states on the way; one that comes back to itself has no end of texts.
bool RegularLanguage::AddTexts(int state, const std::vector<bool>& live, std::size_t most,
                               std::vector<bool>* open, std::string* text,
                               std::vector<std::string>* texts) const {
  constexpr std::size_t kMaxText = 200;
  if ((*open)[state] || text->size() > kMaxText) return false;
  (*open)[state] = true;
  if (states_[state].accepts) texts->push_back(*text);
  std::uint32_t code = 0;
  for (const auto& [last, target] : states_[state].steps) {
    for (; live[target] && code <= last; ++code) {
      if (!IsScalarValue(code)) continue;
      const std::size_t size = text->size();
      AppendUtf8(code, text);
      if (!AddTexts(target, live, most, open, text, texts)) return false;
      text->resize(size);
      if (texts->size() > most) return false;
    }
    code = last + 1;
  }
  (*open)[state] = false;
  return texts->size() <= most;
}

std::vector<bool> RegularLanguage::LiveStates() const {
  std::vector<std::vector<int>> sources(states_.size());
  std::vector<bool> live(states_.size(), false);
  std::vector<int> todo;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    for (const Step& step : states_[i].steps) sources[step.target].push_back(Int(i));
    if (states_[i].accepts) todo.push_back(Int(i));
  }
  while (!todo.empty()) {
    const int state = todo.back();
    todo.pop_back();
    if (live[state]) continue;
    live[state] = true;
    todo.insert(todo.end(), sources[state].begin(), sources[state].end());
  }
  return live;
}

void RegularLanguage::MergeSteps() {
  for (State& state : states_) {
    std::size_t kept = 0;
    for (const Step& step : state.steps) {
      if (kept > 0 && state.steps[kept - 1].target == step.target) --kept;
      state.steps[kept++] = step;
    }
    state.steps.resize(kept);
  }
}

void RegularLanguage::Minimize() {
  MergeSteps();
  const std::vector<int> block = StatePartition(states_).BlockOfEach();
  std::vector<int> number(states_.size(), -1);  // The number of each block; the first state's is 0.
  std::vector<State> merged;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (number[block[i]] >= 0) continue;
    number[block[i]] = Int(merged.size());
    merged.push_back(std::move(states_[i]));
  }
  for (State& state : merged) {
    for (Step& step : state.steps) step.target = number[block[step.target]];
  }
  states_ = std::move(merged);
  MergeSteps();
}

}  // namespace foretoken
