#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/integers.h"
#include "base/result.h"
#include "base/text/utf8.h"

namespace foretoken {

/// A set of texts that a finite automaton can tell from others: deterministic, complete, over code
/// points and with as few states as it can have. Immutable.
///
/// What makes one of others may need many states, so it may fail: the error is half a sentence, for
/// the caller to say of what.
class RegularLanguage {
 public:
  static constexpr std::size_t kMaxStates = 1 << 15;  ///< While one is made.

  /// Characters above those of the step before, up to `last`, lead to `target`.
  struct Step {
    std::uint32_t last = kLastCodePoint;
    int target = 0;
    friend bool operator==(const Step&, const Step&) = default;
  };
  struct State {
    bool accepts = false;
    std::vector<Step> steps;  ///< Ascending, up to kLastCodePoint.
  };

  /// Every text.
  RegularLanguage() : states_{{.accepts = true, .steps = {{}}}} {}
  /// Texts of `min` to `max` characters (-1: of any number from `min` on).
  static Result<RegularLanguage> OfLength(int min, int max);
  /// These texts, valid UTF-8, and no others.
  static Result<RegularLanguage> OfTexts(std::span<const std::string> texts);

  /// The language of an automaton whose states are `Key`s, reached from `start`. `steps(key)` lists
  /// pairs of a last character and a key, ascending up to kLastCodePoint; `accepts(key)` tells
  /// whether a text may end there.
  template <typename Key, typename Steps, typename Accepts>
  static Result<RegularLanguage> Explore(const Key& start, Steps steps, Accepts accepts);

  RegularLanguage Complement() const;
  Result<RegularLanguage> Intersect(const RegularLanguage& other) const;
  Result<RegularLanguage> Unite(const RegularLanguage& other) const;

  bool Has(std::string_view text) const;
  /// The texts, where they are `most` at most.
  std::optional<std::vector<std::string>> Texts(std::size_t most) const;
  bool empty() const { return states_.size() == 1 && !states_[0].accepts; }
  /// Whether it is every text.
  bool full() const { return states_.size() == 1 && states_[0].accepts; }

  /// Texts begin in the first.
  std::span<const State> states() const { return states_; }
  /// For each state whether a text that comes there can go on to be in the language.
  std::vector<bool> LiveStates() const;

 private:
  explicit RegularLanguage(std::vector<State> states) : states_(std::move(states)) { Minimize(); }

  static Error TooLarge();
  template <typename Accepts>
  static Result<RegularLanguage> Product(const RegularLanguage& a, const RegularLanguage& b,
                                         Accepts accepts);
  bool AddTexts(int state, const std::vector<bool>& live, std::size_t most, std::vector<bool>* open,
                std::string* text, std::vector<std::string>* texts) const;
  void MergeSteps();
  void Minimize();

  std::vector<State> states_;
};

template <typename Key, typename Steps, typename Accepts>
Result<RegularLanguage> RegularLanguage::Explore(const Key& start, Steps steps, Accepts accepts) {
  std::map<Key, int> numbers{{start, 0}};
  std::vector<Key> keys{start};
  std::vector<State> states;
  while (states.size() < keys.size()) {
    const Key key = keys[states.size()];
    State state{.accepts = accepts(key)};
    for (auto& [last, next] : steps(key)) {
      const auto [known, added] = numbers.try_emplace(next, Int(keys.size()));
      if (added) keys.push_back(next);
      state.steps.push_back({last, known->second});
    }
    states.push_back(std::move(state));
    if (keys.size() > kMaxStates) return TooLarge();
  }
  return RegularLanguage(std::move(states));
}

}  // namespace foretoken
