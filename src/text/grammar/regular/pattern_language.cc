#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "text/grammar/regular/pattern.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxPlaces = 20000;
constexpr std::size_t kMaxLookStates = 8000;
constexpr std::size_t kMaxPatternWork = 5'000'000;  // All that is done for one pattern.

// A nondeterministic automaton for a pattern. It is built back to front: each part is compiled
// knowing where it goes on, so that a look-ahead can be intersected with all that follows it.
class PatternAutomaton {
 public:
  explicit PatternAutomaton(bool may_narrow) : may_narrow_(may_narrow) {
    const int end = Add({});            // Where a text ends.
    const int rest = Add({{end}, {}});  // Anything before.
    places_[rest].characters.push_back({{0, kLastCodePoint}, rest});
    rest_ = rest;
  }

  Result<RegularLanguage> Search(const Pattern& pattern) {
    const int found = Compile(pattern, rest_);
    const int search = Add({{found}, {}});
    places_[search].characters.push_back({{0, kLastCodePoint}, search});
    return Determine(search, true);
  }

 private:
  static constexpr int kEnd = 0;

  struct Place {
    std::vector<int> next;      // Without taking a character,
    std::vector<int> at_begin;  // at the beginning of the text only,
    std::vector<int> at_end;    // at its end only.
    struct Character {
      CodeRange range;
      int next;
    };
    std::vector<Character> characters;
  };
  using Places = std::vector<int>;  // Ascending.

  int Add(Place place) {
    if (places_.size() < kMaxPlaces) {
      places_.push_back(std::move(place));
    } else if (!error_.has_value()) {
      error_ = Invalid("needs an automaton of more than {} states", kMaxPlaces);
    }
    return std::ssize(places_) - 1;
  }

  // Where `pattern`, followed by what comes at `next`, begins.
  int Compile(const Pattern& pattern, int next) {
    if (error_.has_value()) return next;
    switch (pattern.kind) {
      case Pattern::Kind::kClass: {
        Place place;
        for (const CodeRange& range : pattern.ranges) place.characters.push_back({range, next});
        return Add(std::move(place));
      }
      case Pattern::Kind::kSequence:
        for (auto part = pattern.parts.rbegin(); part != pattern.parts.rend(); ++part) {
          next = Compile(*part, next);
        }
        return next;
      case Pattern::Kind::kChoice: {
        Place place;
        for (const Pattern& part : pattern.parts) place.next.push_back(Compile(part, next));
        return Add(std::move(place));
      }
      case Pattern::Kind::kRepeat:
        return CompileRepeat(pattern, next);
      case Pattern::Kind::kBegin:
        return Add({.at_begin = {next}});
      case Pattern::Kind::kEnd:
        return Add({.at_end = {next}});
      case Pattern::Kind::kAhead:
      case Pattern::Kind::kNotAhead:
        return CompileLook(pattern, next);
    }
    return next;
  }

  int CompileRepeat(const Pattern& pattern, int next) {
    const Pattern& part = pattern.parts[0];
    int at = next;
    if (pattern.max == Expression::kUnbounded) {
      at = Add({.next = {next}});
      ++loops_;
      const int body = Compile(part, at);
      --loops_;
      places_[at].next.push_back(body);
    }
    for (int i = pattern.min; i < pattern.max && !error_.has_value(); ++i) {
      at = Add({.next = {Compile(part, at), next}});
    }
    for (int i = 0; i < pattern.min && !error_.has_value(); ++i) at = Compile(part, at);
    return at;
  }

  int CompileLook(const Pattern& pattern, int next) {
    if (loops_ > 0) {
      error_ =
          InvalidInput("has a look-ahead within an endless repetition, which is not supported");
      return next;
    }
    const bool may_narrow = may_narrow_;
    const auto language = [&]() -> Result<RegularLanguage> {
      may_narrow_ = may_narrow && pattern.kind == Pattern::Kind::kAhead;
      const int ahead = Compile(pattern.parts[0], rest_);
      FT_ASSIGN_OR_RETURN(RegularLanguage seen, Determine(ahead, false));
      if (pattern.kind == Pattern::Kind::kNotAhead) seen = seen.Complement();
      FT_ASSIGN_OR_RETURN(const RegularLanguage follows, Determine(next, false));
      return IntersectLook(seen, follows, may_narrow);
    }();
    may_narrow_ = may_narrow;
    if (!language.ok()) {
      if (!error_.has_value()) error_ = language.error();
      return next;
    }
    const auto states = language->states();
    const std::vector<bool> live = language->LiveStates();
    const int first = places_.size();
    for (std::size_t i = 0; i < states.size(); ++i) {
      Place place;
      if (states[i].accepts) place.next.push_back(kEnd);
      std::uint32_t begin = 0;
      for (const auto& [last, target] : states[i].steps) {
        if (live[target]) place.characters.push_back({{begin, last}, first + target});
        begin = last + 1;
      }
      Add(std::move(place));
    }
    return first;
  }

  // What counts characters beside something else takes states for each: shorter texts may do.
  static Result<RegularLanguage> IntersectLook(const RegularLanguage& seen,
                                               const RegularLanguage& follows, bool may_narrow) {
    if (!may_narrow || seen.states().size() * follows.states().size() <= kMaxLookStates) {
      return seen.Intersect(follows);
    }
    const auto longest = std::max<std::size_t>(32, kMaxLookStates / follows.states().size());
    FT_ASSIGN_OR_RETURN(const auto length, RegularLanguage::OfLength(0, static_cast<int>(longest)));
    FT_ASSIGN_OR_RETURN(const auto shorter, seen.Intersect(length));
    return shorter.Intersect(follows);
  }

  // The texts that lead from `start` to the end.
  Result<RegularLanguage> Determine(int start, bool at_begin) {
    if (error_.has_value()) return *error_;
    // Sets of places are kept before what needs no character is followed; a set with -1 among them
    // stands at the beginning.
    Places first{start};
    if (at_begin) first.insert(first.begin(), -1);
    const auto steps = [&](const Places& from) {
      auto list = StepsFrom(from);
      if (work_ > kMaxPatternWork) list = {{kLastCodePoint, Places{}}};  // Refused below.
      return list;
    };
    auto language = RegularLanguage::Explore(first, steps, [&](const Places& places) {
      const Places reached = Closure(places, true);
      return std::binary_search(reached.begin(), reached.end(), kEnd);
    });
    if (work_ > kMaxPatternWork) return InvalidInput("is too intricate; write it simpler");
    return language;
  }

  // By last character, ascending: where characters lead from `from`. Classes may have hundreds of
  // ranges, so it goes through where they begin and end and keeps count of those that are open.
  std::vector<std::pair<std::uint32_t, Places>> StepsFrom(const Places& from) {
    struct Bound {
      std::uint32_t code;
      int next;
      int opens;  // 1, or -1 where a range has ended.
    };
    std::vector<Bound> bounds;
    for (const int place : Closure(from, false)) {
      for (const auto& [range, next] : places_[place].characters) {
        bounds.push_back({range.first, next, 1});
        if (range.last < kLastCodePoint) bounds.push_back({range.last + 1, next, -1});
      }
    }
    std::ranges::sort(bounds, {}, &Bound::code);
    std::vector<std::pair<std::uint32_t, Places>> list;
    std::map<int, int> open;  // How many ranges lead there.
    for (auto bound = bounds.begin(); bound != bounds.end();) {
      const std::uint32_t begin = bound->code;
      if (begin > 0) AddStep(begin - 1, open, &list);
      for (; bound != bounds.end() && bound->code == begin; ++bound) {
        const auto at = open.try_emplace(bound->next, 0).first;
        at->second += bound->opens;
        if (at->second == 0) open.erase(at);
      }
      work_ += 1 + open.size();
    }
    AddStep(kLastCodePoint, open, &list);
    work_ += bounds.size();
    return list;
  }

  static void AddStep(std::uint32_t last, const std::map<int, int>& open,
                      std::vector<std::pair<std::uint32_t, Places>>* list) {
    Places to;
    for (const auto& [place, count] : open) to.push_back(place);
    if (!list->empty() && list->back().second == to) list->pop_back();
    list->emplace_back(last, std::move(to));
  }

  Places Closure(const Places& from, bool at_end) {
    const bool at_begin = !from.empty() && from.front() < 0;
    Places reached;
    std::vector<int> todo(from.begin() + (at_begin ? 1 : 0), from.end());
    std::vector<bool> seen(places_.size(), false);
    while (!todo.empty() && ++work_ <= kMaxPatternWork) {
      const int place = todo.back();
      todo.pop_back();
      if (seen[place]) continue;
      seen[place] = true;
      reached.push_back(place);
      const Place& at = places_[place];
      todo.insert(todo.end(), at.next.begin(), at.next.end());
      if (at_begin) todo.insert(todo.end(), at.at_begin.begin(), at.at_begin.end());
      if (at_end) todo.insert(todo.end(), at.at_end.begin(), at.at_end.end());
    }
    std::sort(reached.begin(), reached.end());
    return reached;
  }

  std::vector<Place> places_;
  int rest_ = 0;
  bool may_narrow_;
  std::size_t work_ = 0;
  int loops_ = 0;  // Endless repetitions around the part at hand.
  std::optional<Error> error_;
};

}  // namespace

Result<RegularLanguage> LanguageOf(const Pattern& pattern, bool may_narrow) {
  return PatternAutomaton(may_narrow).Search(pattern);
}

}  // namespace foretoken
