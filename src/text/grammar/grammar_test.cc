#include "text/grammar/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/utf8.h"
#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/automaton/state_graph.h"
#include "text/grammar/grammar_text.h"

namespace foretoken {
namespace {

std::string ParseError(std::string_view text) {
  const auto grammar = ParseGrammar(text);
  return grammar.ok() ? "no error" : grammar.error().message;
}

std::string CompileError(std::string_view text) {
  const auto grammar = ParseGrammar(text);
  if (!grammar.ok()) return "does not parse: " + grammar.error().message;
  const auto automaton = Automaton::Compile(*grammar, 16);
  return automaton.ok() ? "no error" : automaton.error().message;
}

TEST(ParseGrammar, NamesLineAndColumnOfEveryMistake) {
  using testing::HasSubstr;
  EXPECT_THAT(ParseError(""), HasSubstr("no rule 'root'"));
  EXPECT_THAT(ParseError("a ::= \"x\""), HasSubstr("no rule 'root'"));
  EXPECT_THAT(ParseError("root ::= \"a\n"), HasSubstr("line 1, column 10: this literal has no"));
  EXPECT_THAT(ParseError("root ::= [a"), HasSubstr("column 10: this '[' is never closed"));
  EXPECT_THAT(ParseError("root ::= [b-a]"), HasSubstr("column 11: this range"));
  EXPECT_THAT(ParseError("root ::= []"), HasSubstr("class of characters is empty"));
  EXPECT_THAT(ParseError("root ::= [^\\x00-\\U0010FFFF]"), HasSubstr("empty"));
  EXPECT_THAT(ParseError("root ::=\n  (\"a\""), HasSubstr("line 2, column 3: this '('"));
  EXPECT_THAT(ParseError("root ::= \"a\")"), HasSubstr("column 13: this ')' closes nothing"));
  EXPECT_THAT(ParseError("root ::= é"), HasSubstr("'é' does not begin anything known"));
  EXPECT_THAT(ParseError("root ::= \"é\" @"), HasSubstr("column 14: '@'"));
  EXPECT_THAT(ParseError("root ::= thing"), HasSubstr("column 10: the rule 'thing' is used but"));
  EXPECT_THAT(ParseError("root ::= \"a\"\nroot ::= \"b\""),
              HasSubstr("line 2, column 1: the rule 'root' is defined twice"));
  EXPECT_THAT(ParseError("root ::= \"\\q\""), HasSubstr("this escape is not known"));
  EXPECT_THAT(ParseError("root ::= \"\\uD800\""), HasSubstr("needs 4 hexadecimal digits"));
  EXPECT_THAT(ParseError("root ::= \"a\"{3,2}"), HasSubstr("{3,2} ends before it begins"));
  EXPECT_THAT(ParseError("root ::= \"a\"{}"), HasSubstr("a repetition is written"));
  EXPECT_THAT(ParseError("root ::= \"a\"{99999999999}"), HasSubstr("counts to 20000 at most"));
  EXPECT_THAT(ParseError("root ::= \"a\"******"), HasSubstr("follow one another"));
  EXPECT_THAT(ParseError("root = \"a\""), HasSubstr("'::=' should follow the rule name 'root'"));
  EXPECT_THAT(ParseError("root ::= \"\xFF\""), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(ParseError("root ::= " + std::string(101, '(')), HasSubstr("nested more than 100"));
  EXPECT_THAT(ParseError(std::string(kMaxGrammarBytes + 1, ' ')), HasSubstr("at most 262144"));
}

TEST(ParseGrammar, ReadsTheWholeNotation) {
  const auto grammar = ParseGrammar(
      "# a comment\n"
      "root ::= item (\",\" item)* # another\n"
      "  | \"none\" |\n"
      "item-1_x ::= [^\\]\\n-] . \"\\x41\\u00e9\\\"\"{2}{1,3}\n"
      "item ::= item-1_x{,2} \"b\"+ \"c\"? \"d\"{4,}\n");
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  ASSERT_EQ(grammar->rules.size(), 3);
  EXPECT_EQ(grammar->rules[grammar->root].name, "root");
  // The alternatives of root; the last is empty.
  EXPECT_EQ(grammar->rules[0].body.parts.size(), 3);
  EXPECT_EQ(grammar->rules[0].body.parts[2].literal, "");
  const Expression& escaped = grammar->rules[2].body;
  EXPECT_EQ(escaped.parts[0].ranges,
            (std::vector<CodeRange>{
                {0, 9}, {11, ','}, {'.', '\\'}, {'^', 0xD7FF}, {0xE000, kLastCodePoint}}));
  EXPECT_EQ(escaped.parts[2].min, 1);
  EXPECT_EQ(escaped.parts[2].parts[0].max, 2);
  EXPECT_EQ(escaped.parts[2].parts[0].parts[0].literal, "A\xC3\xA9\"");
}

TEST(GrammarLiteral, IsReadBackAsItWas) {
  const std::string text = "a\"\\\n\t\x01\x7Fé";
  const auto grammar = ParseGrammar("root ::= " + GrammarLiteral(text));
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_EQ(grammar->rules[0].body.literal, text);
}

TEST(Automaton, RefusesWhatCannotBeMatched) {
  using testing::HasSubstr;
  EXPECT_THAT(CompileError("root ::= root \"a\" | \"b\""), HasSubstr("(root -> root)"));
  EXPECT_THAT(CompileError("root ::= a\na ::= (b \"x\")*\nb ::= \" \"? a"),
              HasSubstr("comes back to itself"));
  EXPECT_THAT(CompileError("root ::= \"a\" root"), HasSubstr("rule 'root' can never be matched"));
  EXPECT_THAT(CompileError("root ::= \"a\" | b\nb ::= \"x\" b"), HasSubstr("rule 'b' can never"));
  EXPECT_THAT(CompileError("root ::= (\"aaaaaaaaaaaaaaaaaaaa\"{1000}){1000}"),
              HasSubstr("too large"));
  EXPECT_EQ(CompileError("root ::= \"a\" root?"), "no error");
  // What the root never uses does not matter.
  EXPECT_EQ(CompileError("root ::= \"a\"\nb ::= b"), "no error");
}

TEST(Automaton, TakesThousandsOfChainedRules) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < 10000; ++i) text += fmt::format("r{} ::= r{}\n", i, i + 1);
  EXPECT_EQ(CompileError(text + "r10000 ::= \"a\"*"), "no error");
}

// A text is in few places at once in a class with many ranges: as many as there are first bytes.
TEST(Automaton, CharactersOfAClassShareTheirFirstBytes) {
  constexpr std::uint32_t kEnd = 0x20000;
  std::vector<bool> wanted(kEnd, false);
  std::vector<CodeRange> ranges;
  for (std::uint32_t code = 0x40; code < kEnd; code += 1 + code % 7) {
    ranges.push_back({code, code});
    wanted[code] = IsScalarValue(code);
  }
  Grammar grammar;
  grammar.rules.push_back({.name = "root", .body = ClassOf(NormalizeRanges(std::move(ranges)))});
  EXPECT_GT(grammar.rules[0].body.ranges.size(), 10'000);
  const auto automaton = Automaton::Compile(grammar, 16);
  ASSERT_TRUE(automaton.ok());
  StateGraph graph(&*automaton);
  EXPECT_LE(graph.threads(graph.start()).size(), 128U);
  for (std::uint32_t code = 0; code < kEnd; ++code) {
    if (!IsScalarValue(code)) continue;
    std::string bytes;
    AppendUtf8(code, &bytes);
    ASSERT_EQ(graph.MayEnd(graph.Next(graph.start(), bytes)), wanted[code]) << code;
  }
}

TEST(Utf8Sequences, CoverExactlyTheirRange) {
  const std::vector<CodeRange> ranges = {{0, 0x7F},
                                         {0x41, 0x41},
                                         {0x20, 0x7FF},
                                         {0x80, 0x900},
                                         {0x3FF, 0x2345},
                                         {0xD000, 0xD7FF},
                                         {0xE000, 0x1FFFF},
                                         {0x7F3, 0x10FFFF},
                                         {0x12345, 0x54321},
                                         {0xFFFF, 0x10000},
                                         {0x10FFFF, kLastCodePoint}};
  for (const CodeRange& given : ranges) {
    const auto parts = NormalizeRanges({given});
    std::vector<ByteSequence> sequences;
    for (const CodeRange& part : parts) {
      for (const auto& sequence : Utf8Sequences(part)) sequences.push_back(sequence);
    }
    for (std::uint32_t code = 0; code <= kLastCodePoint; code += code < 0x3000 ? 1 : 13) {
      if (!IsScalarValue(code)) continue;
      std::string bytes;
      AppendUtf8(code, &bytes);
      int matches = 0;
      for (const ByteSequence& sequence : sequences) {
        if (sequence.size() != bytes.size()) continue;
        bool all = true;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          const auto byte = static_cast<std::uint8_t>(bytes[i]);
          all = all && sequence[i].first <= byte && byte <= sequence[i].last;
        }
        matches += all ? 1 : 0;
      }
      ASSERT_EQ(matches, code >= given.first && code <= given.last ? 1 : 0) << code;
    }
  }
}

}  // namespace
}  // namespace foretoken
