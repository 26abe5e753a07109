#include "text/grammar/json/json_grammar.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "text/grammar/automaton/code_points.h"
#include "text/grammar/grammar_text.h"

namespace foretoken {
namespace {

using PatternKind = Pattern::Kind;

constexpr const char* kBaseNames[] = {"value",     "object", "array",   "string",
                                      "character", "number", "integer", "space"};
constexpr std::string_view kBaseRules =
    R"(root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" space (string ":" space value ("," space string ":" space value)* space)? "}"
array ::= "[" space (value ("," space value)* space)? "]"
string ::= "\"" character* "\""
character ::= [^"\\\x00-\x1F] |
  "\\" (["\\/bfnrt] | "u" ([0-9A-Ca-cEFef] hex{3} | [Dd] [0-7] hex{2}))
hex ::= [0-9A-Fa-f]
number ::= integer ("." [0-9]{1,16})? ([Ee] [-+]? [0-9]{1,2})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
space ::= (" " | "\n" [ \t]{0,20})?
)";

// Without escapes that need not be, zeros at the end of fractions, exponents, and more digits than
// double-precision numbers tell apart.
constexpr std::string_view kOneSpellingRules =
    R"(one-value ::= one-object | one-array | one-string | one-number | "true" | "false" | "null"
one-object ::= "{" space (one-member ("," space one-member)* space)? "}"
one-member ::= one-string ":" space one-value
one-array ::= "[" space (one-value ("," space one-value)* space)? "]"
one-string ::= "\"" one-character* "\""
one-character ::= [^"\\\x00-\x1F] | "\\" (["\\bfnrt] | "u00" ("0" [0-7be-f] | "1" [0-9a-f]))
one-number ::= one-integer | "-"? ("0" | [1-9] [0-9]{0,6}) "." [0-9]{0,7} [1-9]
one-integer ::= "0" | "-"? [1-9] [0-9]{0,14}
)";

// Characters that stand for themselves in a string.
std::vector<CodeRange> PlainCharacters() {
  return {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0xD7FF}, {0xE000, kLastCodePoint}};
}

// Control characters from 0x`high`0 on, as the last digit of \u00XX.
Expression ControlDigit(const std::vector<CodeRange>& ranges, std::uint32_t high) {
  std::vector<CodeRange> digits;
  const auto controls = IntersectRanges(ranges, {{16 * high, 16 * high + 15}});
  for (const CodeRange& range : controls) {
    for (std::uint32_t code = range.first; code <= range.last; ++code) {
      const auto digit = static_cast<std::uint32_t>("0123456789abcdef"[code % 16]);
      digits.push_back({digit, digit});
    }
  }
  return ClassOf(NormalizeRanges(std::move(digits)));
}

Expression Quoted(Expression content) {
  return SequenceOf({LiteralOf("\""), std::move(content), LiteralOf("\"")});
}

bool HasAnchor(const Pattern& pattern) {
  return pattern.kind == PatternKind::kBegin || pattern.kind == PatternKind::kEnd ||
         pattern.kind == PatternKind::kAhead || pattern.kind == PatternKind::kNotAhead ||
         std::ranges::any_of(pattern.parts, HasAnchor);
}

std::span<const Pattern> Alternatives(const Pattern& pattern) {
  return pattern.kind == PatternKind::kChoice ? std::span(pattern.parts) : std::span(&pattern, 1);
}

// A sequence without its anchors.
struct Anchored {
  std::span<const Pattern> parts;
  bool begin = false;
  bool end = false;
};

Anchored WithoutAnchors(const Pattern& sequence) {
  Anchored anchored{.parts = sequence.kind == PatternKind::kSequence ? std::span(sequence.parts)
                                                                     : std::span(&sequence, 1)};
  if (!anchored.parts.empty() && anchored.parts.front().kind == PatternKind::kBegin) {
    anchored.begin = true;
    anchored.parts = anchored.parts.subspan(1);
  }
  if (!anchored.parts.empty() && anchored.parts.back().kind == PatternKind::kEnd) {
    anchored.end = true;
    anchored.parts = anchored.parts.first(anchored.parts.size() - 1);
  }
  return anchored;
}

}  // namespace

bool IsPlain(const Pattern& pattern) {
  return std::ranges::all_of(Alternatives(pattern), [](const Pattern& sequence) {
    return std::ranges::none_of(WithoutAnchors(sequence).parts, HasAnchor);
  });
}

JsonGrammar::JsonGrammar() {
  auto base = ParseGrammar(fmt::format("{}{}", kBaseRules, kOneSpellingRules));
  FT_CHECK(base.ok());
  grammar_ = std::move(base).value();
}

Expression JsonGrammar::Rule(Base base, Spelling spelling) const {
  const std::string name =
      fmt::format("{}{}", spelling == Spelling::kOne ? "one-" : "", kBaseNames[base]);
  const auto rule = std::ranges::find(grammar_.rules, name, &GrammarRule::name);
  return RuleOf(static_cast<int>(rule - grammar_.rules.begin()));
}

int JsonGrammar::AddRule() {
  const int rule = grammar_.rules.size();
  grammar_.rules.push_back({.name = fmt::format("r{}", rule), .body = ChoiceOf({})});
  return rule;
}

Expression JsonGrammar::Character(const std::vector<CodeRange>& ranges) {
  std::vector<std::uint32_t> key;
  for (const CodeRange& range : ranges) key.insert(key.end(), {range.first, range.last});
  const auto [known, added] = characters_.try_emplace(std::move(key), -1);
  if (!added) return RuleOf(known->second);
  std::vector<Expression> parts;
  parts.push_back(ClassOf(IntersectRanges(ranges, PlainCharacters())));
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  std::vector<CodeRange> letters;
  for (std::size_t i = 0; i < kEscaped.size(); ++i) {
    const auto code = static_cast<std::uint32_t>(kEscaped[i]);
    const auto letter = static_cast<std::uint32_t>(kLetters[i]);
    if (!IntersectRanges(ranges, {{code, code}}).empty()) letters.push_back({letter, letter});
  }
  parts.push_back(SequenceOf({LiteralOf("\\"), ClassOf(NormalizeRanges(std::move(letters)))}));
  const auto others = IntersectRanges(ranges, {{0, 7}, {0xB, 0xB}, {0xE, 0x1F}});
  for (const std::uint32_t high : {0U, 1U}) {
    parts.push_back(
        SequenceOf({LiteralOf(fmt::format("\\u00{}", high)), ControlDigit(others, high)}));
  }
  // One plain character is a literal, which needs no rule.
  const bool single =
      ranges.size() == 1 && ranges[0].first == ranges[0].last && parts[0].ranges.size() == 1;
  if (single) {
    std::string bytes;
    AppendUtf8(ranges[0].first, &bytes);
    characters_.erase(known);
    return LiteralOf(std::move(bytes));
  }
  known->second = AddRule();
  SetBody(known->second, ChoiceOf(std::move(parts)));
  return RuleOf(known->second);
}

Expression JsonGrammar::StringOf(const Pattern& pattern, Spelling spelling) {
  std::vector<Expression> choices;
  const Expression anything = RepeatOf(Rule(kCharacter, spelling), 0, Expression::kUnbounded);
  for (const Pattern& alternative : Alternatives(pattern)) {
    const Anchored anchored = WithoutAnchors(alternative);
    std::vector<Expression> parts;
    if (!anchored.begin) parts.push_back(anything);
    for (const Pattern& part : anchored.parts) parts.push_back(PatternPart(part));
    if (!anchored.end) parts.push_back(anything);
    choices.push_back(SequenceOf(std::move(parts)));
  }
  return Quoted(ChoiceOf(std::move(choices)));
}

Expression JsonGrammar::PatternPart(const Pattern& pattern) {
  if (pattern.kind == PatternKind::kClass) return Character(pattern.ranges);
  std::vector<Expression> parts;
  for (const Pattern& part : pattern.parts) parts.push_back(PatternPart(part));
  if (pattern.kind == PatternKind::kChoice) return ChoiceOf(std::move(parts));
  if (pattern.kind == PatternKind::kSequence) return SequenceOf(std::move(parts));
  return RepeatOf(std::move(parts[0]), pattern.min, pattern.max);
}

// A rule per state, which says what may follow, with `end` behind a text of the language: a rule
// that may end behind any character has tokens looked at again for each (TokenMask). States with
// one way in and one way on are written where they are used.
template <typename OfRanges>
Result<int> JsonGrammar::AddLanguage(const RegularLanguage& language, const std::string& end,
                                     OfRanges of_ranges) {
  const auto states = language.states();
  const std::vector<bool> live = language.LiveStates();
  std::size_t written = 0;
  std::vector<std::map<int, std::vector<CodeRange>>> ways(states.size());  // By target.
  std::vector<int> entries(states.size(), 0);
  for (std::size_t i = 0; i < states.size(); ++i) {
    std::uint32_t begin = 0;
    for (const auto& [last, target] : states[i].steps) {
      if (live[i] && live[target]) ways[i][target].push_back({begin, last});
      begin = last + 1;
    }
    for (const auto& [target, ranges] : ways[i]) ++entries[target];
    written += ways[i].size();
  }
  if (written > kMaxSteps) {
    return Invalid("needs an automaton of more than {} steps", kMaxSteps);
  }
  std::vector<int> rules(states.size(), -1);
  std::vector<int> todo;
  const auto rule_of = [&](int state) {
    if (rules[state] < 0) {
      rules[state] = AddRule();
      todo.push_back(state);
    }
    return rules[state];
  };
  const int first = rule_of(0);
  while (!todo.empty()) {
    const int state = todo.back();
    todo.pop_back();
    std::vector<Expression> choices;
    for (const auto& [target, ranges] : ways[state]) {
      std::vector<Expression> parts{of_ranges(NormalizeRanges(ranges))};
      int at = target;
      while (entries[at] == 1 && ways[at].size() == 1 && !states[at].accepts) {
        const auto& [next, next_ranges] = *ways[at].begin();
        parts.push_back(of_ranges(NormalizeRanges(next_ranges)));
        at = next;
      }
      parts.push_back(ways[at].empty() ? LiteralOf(end) : RuleOf(rule_of(at)));
      choices.push_back(SequenceOf(std::move(parts)));
    }
    if (states[state].accepts) choices.push_back(LiteralOf(end));
    SetBody(rules[state], ChoiceOf(std::move(choices)));
  }
  return first;
}

Result<Expression> JsonGrammar::StringOf(const RegularLanguage& language) {
  FT_ASSIGN_OR_RETURN(const int content, AddLanguage(language, "\"", [&](const auto& ranges) {
                        return Character(ranges);
                      }));
  return SequenceOf({LiteralOf("\""), RuleOf(content)});
}

Result<Expression> JsonGrammar::NameOf(const RegularLanguage& language) {
  FT_ASSIGN_OR_RETURN(const int content, AddLanguage(language, "\"", [&](const auto& ranges) {
                        return Character(IntersectRanges(ranges, PlainCharacters()));
                      }));
  return SequenceOf({LiteralOf("\""), RuleOf(content)});
}

Result<Expression> JsonGrammar::NumberOf(const RegularLanguage& language) {
  FT_ASSIGN_OR_RETURN(const int number, AddLanguage(language, "", [](auto ranges) {
                        return ClassOf(std::move(ranges));
                      }));
  return RuleOf(number);
}

Result<std::string> JsonGrammar::Write(int root) && {
  SetBody(grammar_.root, RuleOf(root));
  if (!DropUnmatchable(&grammar_)) return InvalidInput("schema, at its root: no value matches it");
  return GrammarText(grammar_);
}

}  // namespace foretoken
