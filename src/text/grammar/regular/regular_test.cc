#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text/utf8.h"
#include "text/grammar/regular/decimal_language.h"
#include "text/grammar/regular/pattern.h"
#include "text/grammar/regular/regular_language.h"

namespace foretoken {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RegularLanguage Found(std::string_view pattern, bool may_narrow = false) {
  const auto parsed = ParsePattern(pattern);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  auto language = LanguageOf(*parsed, may_narrow);
  EXPECT_TRUE(language.ok()) << language.error().message;
  return *language;
}

void CheckPattern(std::string_view pattern, const std::vector<std::string>& in,
                  const std::vector<std::string>& out) {
  const RegularLanguage language = Found(pattern);
  for (const std::string& text : in) EXPECT_TRUE(language.Has(text)) << pattern << " " << text;
  for (const std::string& text : out) EXPECT_FALSE(language.Has(text)) << pattern << " " << text;
}

TEST(RegularLanguage, SetsOfTexts) {
  const std::vector<std::string> texts = {"ab", "abc", "é", ""};
  const auto language = *RegularLanguage::OfTexts(texts);
  for (const std::string& text : texts) EXPECT_TRUE(language.Has(text)) << text;
  for (const char* text : {"a", "abcd", "b", "e", "\xC3"}) EXPECT_FALSE(language.Has(text)) << text;
  EXPECT_THAT(language.Texts(4), testing::Optional(ElementsAre("", "ab", "abc", "é")));
  EXPECT_EQ(language.Texts(3), std::nullopt);
  EXPECT_EQ(language.Complement().Texts(100), std::nullopt);

  const auto two = *RegularLanguage::OfLength(2, 2);
  EXPECT_THAT(language.Intersect(two)->Texts(9), testing::Optional(ElementsAre("ab")));
  const auto either = *language.Unite(two);
  EXPECT_TRUE(either.Has("xy") && either.Has("abc") && !either.Has("x"));
  EXPECT_TRUE(language.Intersect(language.Complement())->empty());
  EXPECT_TRUE(language.Unite(language.Complement())->full());
}

TEST(RegularLanguage, IsMinimal) {
  // Twelve digits in two ways of writing: a state for each count, and one for all other texts.
  EXPECT_EQ(Found("^([0-9]{12}|[0-9]{4}[0-9]{8})$").states().size(), 14);
  EXPECT_EQ(Found("^(a|b)*$").states().size(), 2);
  EXPECT_EQ(Found("a|").states().size(), 1);
  const auto counted = *Found("^[a-c]+$").Intersect(*RegularLanguage::OfLength(3, 5));
  EXPECT_EQ(counted.states().size(), 7);
}

TEST(Pattern, AreSearchedFor) {
  CheckPattern("b+c", {"bc", "abbcd"}, {"", "b", "cb"});
  CheckPattern("^b|c$", {"bx", "xc"}, {"xb", "cx"});
  CheckPattern("(^a|b)+$", {"a", "ab", "xbb"}, {"ba", "xa"});
  CheckPattern("^(?:a{2,3}?|\\u00e9)$", {"aa", "aaa", "é"}, {"a", "aaaa"});
  CheckPattern("^[^\\W_]$", {"x", "7"}, {"_", "-", "é"});
}

TEST(Pattern, EscapesForOneCharacter) {
  CheckPattern("^\\u{1F600}\\u{e9}$", {"😀é"}, {"😀e", "u{1F600}"});
  CheckPattern("^[\\u{1F600}-\\u{1F64F}]+$", {"😀🙏"}, {"🚀"});
  CheckPattern("^\\ud83d\\uDE00$", {"😀"}, {});
  CheckPattern("^\\cj\\cZ$", {"\n\x1A"}, {"cjcZ"});
  for (const char* pattern :
       {"\\u{110000}", "\\u{}", "\\u{41", "\\uD83D", "\\ude00", "\\uD83D\\u0041"}) {
    EXPECT_THAT(ParsePattern(pattern).error().message, HasSubstr("malformed")) << pattern;
  }
  EXPECT_THAT(ParsePattern("\\c1").error().message, HasSubstr("the escape '\\c'"));
}

TEST(Pattern, UnicodeCategories) {
  CheckPattern("^\\p{L}$", {"a", "Z", "é", "ß", "Ω", "中", "𐍈", "𝒜"},
               {"1", "_", " ", "😀", "٣", ""});
  CheckPattern("^\\p{Letter}$", {"ñ", "あ"}, {"٣"});
  CheckPattern("^\\p{Lu}$", {"A", "É", "Ж", "𐐀"}, {"a", "é", "ж", "𐐨", "中"});
  CheckPattern("^\\p{General_Category=Lowercase_Letter}$", {"a", "𐐨"}, {"A"});
  CheckPattern("^\\p{gc=Nd}+$", {"7", "٣", "७", "𝟗"}, {"½", "Ⅷ"});
  CheckPattern("^\\p{punct}\\p{Sc}\\p{Zs}\\p{cntrl}$", {"!€ \t", "—₹\u3000\u0085"},
               {"a€ \t", "!e \t"});
  CheckPattern("^\\P{L}$", {"1", "😀", "٣", "\U0010FFFF"}, {"a", "中", "𝒜"});
  CheckPattern("^\\p{Cn}$", {"\u0378"}, {"a"});
}

TEST(Pattern, UnicodeScripts) {
  CheckPattern("^\\p{Script=Greek}+$", {"Ελλάδα", "ἀ"}, {"Ж", "a", "1"});
  CheckPattern("^\\p{sc=Cyrl}\\p{sc=Han}$", {"Ж中", "ж𠀀"}, {"中Ж"});
  // The mark of long vowels is common to two scripts.
  CheckPattern("^\\p{Script_Extensions=Katakana}\\p{scx=Hira}$", {"アー", "ーあ"}, {"あー"});
  CheckPattern("^\\p{Script=Katakana}$", {"ア"}, {"ー"});
}

TEST(Pattern, PropertiesThatCharactersHaveOrNot) {
  CheckPattern("^\\p{Alphabetic}\\p{Alpha}$", {"aⅧ", "中é"}, {"1a"});
  CheckPattern("^\\p{White_Space}\\p{space}$", {" \t", "\u0085\u3000"}, {"a "});
  CheckPattern("^\\p{ID_Start}\\p{ID_Continue}*$", {"été_2"}, {"2a", "a-b"});
  CheckPattern("^\\p{XIDS}\\p{Hex}\\p{Ideographic}\\p{Uppercase}$", {"éF中É"}, {"éG中É", "éF中é"});
  CheckPattern("^\\p{ASCII}\\p{Any}\\p{Assigned}$", {"a\U0010FFFFé"}, {"éaa", "aa\u0378"});
  CheckPattern("^\\P{Any}|\\P{ASCII}$", {"é"}, {"a", ""});
  CheckPattern("^\\p{Emoji_Presentation}\\p{Emoji_Modifier_Base}\\p{Emoji_Modifier}\\p{RI}$",
               {"😀👍🏽🇩"}, {"❤👍🏽🇩"});
  CheckPattern("^\\p{Emoji}$", {"😀", "❤", "7"}, {"a", "\uFE0F"});
}

TEST(Pattern, UnicodePropertiesInClasses) {
  CheckPattern("^[\\p{L}\\d_-]+$", {"é-2_中"}, {"é 2"});
  CheckPattern("^[^\\p{L}]+$", {"12 😀"}, {"1a2", "é"});
  CheckPattern("^[\\P{L}x]$", {"1", "x"}, {"a"});
  CheckPattern("^[^\\P{Lu}]$", {"É"}, {"é", "1"});
  // Never the end of a range, not even where a class has one character: U+2028.
  CheckPattern("^[\\p{Zl}-\\u2030]$", {"\u2028", "-", "\u2030"}, {"\u2029"});
  CheckPattern("^[!-\\d]$", {"!", "-", "5"}, {"#"});
}

TEST(Pattern, UnicodePropertiesByOtherNamesAreRefused) {
  for (const char* name :
       {"",          "l",         "lu",           "letter",       "Lowercase Letter",
        "LETTER",    "Greek",     "script=Greek", "Script=greek", "Script=",
        "Script",    "Script=L",  "gc=Greek",     "gc=Any",       "General_Category",
        "Emoji=Yes", "emoji",     "Is_L",         "sc=Jpan",      "alnum",
        "Hyphen",    "RGI_Emoji", "Any=",         "=Any",         "^L"}) {
    const auto parsed = ParsePattern(fmt::format("a\\p{{{}}}", name));
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(parsed.error().message,
              fmt::format("the pattern 'a\\p{{{0}}}' asks for the Unicode property '{0}', which is "
                          "not known: names are exact, like \\p{{Lu}}, \\p{{Letter}}, "
                          "\\p{{Script=Greek}} and \\p{{Emoji}}",
                          name));
  }
  for (const char* pattern : {"\\p", "\\pL", "\\P{L"}) {
    EXPECT_THAT(ParsePattern(pattern).error().message, HasSubstr("without a name in braces"));
  }
}

TEST(Pattern, ManyRangesDoNotTakeLong) {
  const RegularLanguage names = Found("\\p{Lu}\\p{Ll}{1,60}(?!x) \\p{L}+");
  EXPECT_TRUE(names.Has("1 Élan éa"));
  EXPECT_FALSE(names.Has("élan éa") || names.Has("Élan 1"));
  std::string many;
  for (int i = 0; i < 40'000; ++i) many += "\\p{L}";
  EXPECT_THAT(ParsePattern(many).error().message, HasSubstr("properties too often"));
  EXPECT_THAT(ParsePattern("[" + many + "]").error().message, HasSubstr("properties too often"));
}

TEST(Pattern, LookAhead) {
  CheckPattern("^(?!.*\\.\\.)[a-z.]+$", {"a.b", "."}, {"a..b", "A"});
  CheckPattern("^(?=.{3,4}$)(a|bb)*$", {"aaa", "bbbb", "abb"}, {"aa", "bbbbb"});
  CheckPattern("a(?!b)", {"a", "ab a", "ac"}, {"ab", "b"});
  CheckPattern("^(?:(?!x)[a-z]){2}$", {"ab"}, {"xa", "ax"});
  const auto endless = ParsePattern("^(?:(?!x).)*$");
  EXPECT_THAT(LanguageOf(*endless, false).error().message, HasSubstr("endless repetition"));
  // As pydantic writes decimal numbers: the text begins there in any case.
  CheckPattern("^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$", {"1", "-.5", "+0.", "007"},
               {"", "-", ".", "1.2.3", "a"});
  CheckPattern("^(?=^a|^^b)(?!^ab)..$", {"aa", "bb"}, {"ab", "cc", "a"});
  for (const char* pattern : {"(?!^a)", "^a(?!^b)", "^(?!a^)", "^(?:(?!b)|c)(?!^a)"}) {
    EXPECT_THAT(ParsePattern(pattern).error().message, HasSubstr("'^' in this place"));
  }
  EXPECT_THAT(ParsePattern("(?<=a)b").error().message, HasSubstr("'(?<='"));
  // A letter of several bytes is left out or quoted whole.
  EXPECT_TRUE(IsUtf8(ParsePattern("(?漢a)b").error().message));
}

TEST(Pattern, LongLookAheadsMayBeNarrowed) {
  const char* const host =
      "^(?=.{1,253}$)[a-z](?:[a-z-]{0,61}[a-z])?(?:\\.[a-z](?:[a-z-]{0,61}[a-z])?)*$";
  const RegularLanguage language = Found(host, true);
  EXPECT_TRUE(language.Has("www.ex-ample.org"));
  EXPECT_FALSE(language.Has("www.-x.org"));
  EXPECT_FALSE(language.Has(std::string(64, 'a')));
}

TEST(Pattern, WithLength) {
  const auto counted = [](std::string_view pattern, int min, int max) {
    const auto parsed = WithLength(*ParsePattern(pattern), min, max);
    return parsed.has_value() ? LanguageOf(*parsed, false)->Texts(10) : std::nullopt;
  };
  EXPECT_THAT(counted("^xa*(y|z)$", 0, 3),
              testing::Optional(ElementsAre("xay", "xaz", "xy", "xz")));
  EXPECT_THAT(counted("^a{2,9}$", 3, 4), testing::Optional(ElementsAre("aaa", "aaaa")));
  EXPECT_FALSE(WithLength(*ParsePattern("^a*b*$"), 0, 3).has_value());
  EXPECT_FALSE(WithLength(*ParsePattern("^(ab)*$"), 0, 3).has_value());
  EXPECT_FALSE(WithLength(*ParsePattern("abc"), 0, 2).has_value());
  const auto open = LanguageOf(*WithLength(*ParsePattern("^ab"), 0, 4), false);
  EXPECT_TRUE(open->Has("ab") && open->Has("abcd") && !open->Has("abcde") && !open->Has("xab"));
}

TEST(Pattern, RefusesWhatWouldTakeLong) {
  for (const char* pattern :
       {"(a?){20000}", "^.*a.{30}$", "((a{100}){100}){100}", "^(?=(a|b)*a(a|b){40})(a|b)*$"}) {
    const auto language = LanguageOf(*ParsePattern(pattern), true);
    EXPECT_FALSE(language.ok()) << pattern;
  }
}

TEST(DecimalLanguage, TextsOfNumbers) {
  for (const auto& [value, text] : {std::pair{0.0, "0"},
                                    {1e20, "100000000000000000000"},
                                    {-0.05, "-0.05"},
                                    {12.5, "12.5"},
                                    {1e-7, "0.0000001"},
                                    {-300, "-300"}}) {
    EXPECT_EQ(Decimal::Of(value).Text(), text);
  }
}

TEST(DecimalLanguage, BoundsAgreeWithArithmetic) {
  const auto syntax = *DecimalSyntax(false, kDecimalDigits);
  for (const double bound :
       {0.0, 1.0, -1.0, 0.05, -0.05, 9.99, 10.0, -10.0, 99.5, 123.456, -20.25}) {
    for (const bool exclusive : {false, true}) {
      const auto from = *DecimalsFrom(Decimal::Of(bound), exclusive)->Intersect(syntax);
      for (int i = -2500; i <= 2500; ++i) {
        const double value = i / 20.0;
        const bool wanted = exclusive ? value > bound : value >= bound;
        ASSERT_EQ(from.Has(fmt::format("{}", value)), wanted) << value << " from " << bound;
        ASSERT_EQ(from.Has(fmt::format("{:.3f}", value)), wanted) << value << " from " << bound;
      }
    }
  }
}

TEST(DecimalLanguage, BoundsOfAnySize) {
  const auto low = *DecimalsFrom(Decimal::Of(std::int64_t{-9223372036854775807 - 1}), false);
  EXPECT_TRUE(low.Has("-9223372036854775808") && low.Has("5") && low.Has("-0.5"));
  EXPECT_FALSE(low.Has("-9223372036854775809") || low.Has("-9223372036854775808.5") ||
               low.Has("-10000000000000000000"));
  const auto high = DecimalsFrom(Decimal::Of(1.7976931348623157e308), true)->Complement();
  EXPECT_TRUE(high.Has("12345678901234567890"));
}

TEST(DecimalLanguage, MultiplesAgreeWithArithmetic) {
  for (const int thousandths : {1, 10, 250, 500, 1000, 1500, 7000, 60000, 100000}) {
    const auto multiples = *DecimalMultiples(Decimal::Of(thousandths / 1000.0));
    for (int i = -3000; i <= 300000; i += i % 7 == 0 ? 1 : 13) {
      ASSERT_EQ(multiples.Has(fmt::format("{}{}.{:03}", i < 0 ? "-" : "", std::abs(i) / 1000,
                                          std::abs(i) % 1000)),
                i % thousandths == 0)
          << i << " of " << thousandths;
    }
    EXPECT_TRUE(multiples.Has("0") && multiples.Has("-0.0"));
    EXPECT_FALSE(multiples.Has("0.0001"));
  }
  EXPECT_FALSE(DecimalMultiples(Decimal::Of(0.123456789)).ok());
}

TEST(DecimalLanguage, EqualNumbers) {
  const auto same = *DecimalsEqualTo(Decimal::Of(-1.5));
  EXPECT_TRUE(same.Has("-1.5") && same.Has("-1.500"));
  EXPECT_FALSE(same.Has("1.5") || same.Has("-1.51") || same.Has("-1") || same.Has("-11.5"));
  const auto zero = *DecimalsEqualTo(Decimal());
  EXPECT_TRUE(zero.Has("0") && zero.Has("-0.00"));
}

}  // namespace
}  // namespace foretoken
