#include "text/grammar/chat/free_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/grammar_text.h"

namespace foretoken {
namespace {

std::vector<std::uint32_t> CodePointsOf(std::string_view text) {
  std::vector<std::uint32_t> characters;
  while (!text.empty()) {
    const Utf8Step step = ReadUtf8(text);
    characters.push_back(step.code);
    text.remove_prefix(step.size);
  }
  return characters;
}

// An automaton that has seen `state` characters of a mark, and none of the mark before.
class MarkSearch {
 public:
  explicit MarkSearch(std::string_view mark) : mark_(CodePointsOf(mark)), borders_{0} {
    for (std::size_t i = 1; i < mark_.size(); ++i)
      borders_.push_back(After(borders_[i - 1], mark_[i]));
  }

  int states() const { return mark_.size(); }
  // Characters that lead anywhere but to the beginning, with where they do.
  std::map<std::uint32_t, int> Steps(int state) const {
    std::map<std::uint32_t, int> steps;
    for (const std::uint32_t character : mark_) {
      if (const int next = After(state, character); next > 0) steps[character] = next;
    }
    return steps;
  }

 private:
  int After(int state, std::uint32_t character) const {
    while (mark_[state] != character) {
      if (state == 0) return 0;
      state = borders_[state - 1];
    }
    return state + 1;
  }

  std::vector<std::uint32_t> mark_;
  // For each beginning of the mark the longest text that is both its start and its end.
  std::vector<int> borders_;
};

// Adds a rule for each state, and returns the first. With `up_to` the texts end with the mark.
int AddStates(const MarkSearch& search, bool up_to, Grammar* grammar) {
  const int first = grammar->rules.size();
  for (int state = 0; state < search.states(); ++state) {
    const std::map<std::uint32_t, int> steps = search.Steps(state);
    std::vector<Expression> ways;
    std::vector<CodeRange> others;
    for (const auto& [character, next] : steps) {
      others.push_back({character, character});
      Expression one = ClassOf({{character, character}});
      if (next < search.states()) {
        ways.push_back(SequenceOf({std::move(one), RuleOf(first + next)}));
      } else if (up_to) {
        ways.push_back(std::move(one));
      }
    }
    ways.push_back(SequenceOf({ClassOf(ComplementRanges(others)), RuleOf(first)}));
    if (!up_to) ways.push_back(LiteralOf(""));
    grammar->rules.push_back(
        {fmt::format("r{}", grammar->rules.size()), ChoiceOf(std::move(ways))});
  }
  return first;
}

}  // namespace

Expression TextUpTo(std::string_view mark, Grammar* grammar) {
  return RuleOf(AddStates(MarkSearch(mark), /*up_to=*/true, grammar));
}

Expression TextWithout(std::string_view mark, std::string_view not_first, Grammar* grammar) {
  const int first = AddStates(MarkSearch(mark), /*up_to=*/false, grammar);
  if (not_first.empty()) return RuleOf(first);
  // The first character's own rule: that of the beginning, but for some.
  Expression beginning = grammar->rules[first].body;
  std::vector<CodeRange> excluded;
  for (const char c : not_first) {
    const auto code = static_cast<std::uint32_t>(c);
    excluded.push_back({code, code});
  }
  const std::vector<CodeRange> allowed = ComplementRanges(NormalizeRanges(std::move(excluded)));
  for (Expression& way : beginning.parts) {
    if (way.parts.empty()) continue;  // The empty text.
    std::vector<CodeRange>& ranges = way.parts.front().ranges;
    ranges = IntersectRanges(ranges, allowed);
  }
  std::erase_if(beginning.parts, [](const Expression& way) {
    return !way.parts.empty() && way.parts.front().ranges.empty();
  });
  grammar->rules.push_back({fmt::format("r{}", grammar->rules.size()), std::move(beginning)});
  return RuleOf(Int(grammar->rules.size()) - 1);
}

}  // namespace foretoken
