#include "foretoken/json_schema.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/state_graph.h"
#include "text/grammar/grammar.h"
#include "text/grammar/unique/unique_lists.h"

namespace foretoken {
namespace {

// Whether a text is in the language of a grammar that must compile.
class Language {
 public:
  explicit Language(const std::string& grammar) {
    const auto parsed = ParseGrammar(grammar);
    EXPECT_TRUE(parsed.ok()) << parsed.error().message << "\n" << grammar;
    auto automaton = Automaton::Compile(*parsed, 16);
    EXPECT_TRUE(automaton.ok()) << automaton.error().message << "\n" << grammar;
    automaton_ = std::make_unique<Automaton>(std::move(automaton).value());
    graph_ = std::make_unique<StateGraph>(automaton_.get());
  }
  bool Has(std::string_view text) { return Matches(text, graph_.get()); }

 private:
  std::unique_ptr<Automaton> automaton_;
  std::unique_ptr<StateGraph> graph_;
};

void Check(std::string_view schema, const std::vector<std::string>& in,
           const std::vector<std::string>& out) {
  const auto grammar = JsonSchemaGrammar(schema);
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  Language language(*grammar);
  for (const std::string& text : in) EXPECT_TRUE(language.Has(text)) << schema << " " << text;
  for (const std::string& text : out) EXPECT_FALSE(language.Has(text)) << schema << " " << text;
}

std::string SchemaError(std::string_view schema) {
  const auto grammar = JsonSchemaGrammar(schema);
  return grammar.ok() ? "no error" : grammar.error().message;
}

TEST(JsonObjectGrammar, IsJson) {
  Language json(JsonObjectGrammar());
  for (const char* text :
       {"{}", R"({"a": 1})", "{\n  \"a\": [1, 2.5, -3e10, {}],\n  \"é\\n\\u00e9\": null\n}",
        R"({"a":{"b":[true,false,"x"]}})"}) {
    EXPECT_TRUE(json.Has(text)) << text;
  }
  for (const char* text : {"", "[]", "{", R"({"a"})", R"({"a":01})", R"({"a":1,})", R"({"a":.5})",
                           "{\"a\":\"\n\"}", R"({"a":"\x"})", R"({"a":"\ud800"})", "{}x"}) {
    EXPECT_FALSE(json.Has(text)) << text;
  }
}

TEST(JsonSchema, Objects) {
  const char* const schema = R"({"type":"object","properties":{"a":{"type":"integer"},
      "b":{"type":"boolean"},"c":{"type":"null"}},"required":["b"],
      "additionalProperties":false})";
  Check(schema, {R"({"b":true})", R"({"a": 1,"b":false})", R"({"a":1, "b":true, "c":null })"},
        {"{}", R"({"a":1})", R"({"b":true,"a":1})", R"({"b":true,})", R"({,"b":true})",
         R"({"b":true,"d":1})", R"({"a":1 "b":true})"});
  Check(
      R"({"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},
          "additionalProperties":false})",
      {"{}", "17", R"({"a":null})", R"({"c":null})", R"({"a":null,"c":null})",
       R"({"b":null,"c":null})"},
      {R"({"d":null})", R"({"c":null,"a":null})", R"({"a":null "b":null})"});
}

TEST(JsonSchema, AdditionalPropertiesHaveOtherNames) {
  Check(R"({"properties":{"ab":{"type":"null"},"a":{"type":"null"}},
            "additionalProperties":{"type":"integer"}})",
        {"{}", R"({"ab":null})", R"({"x":1})", R"({"ab":null,"b":1,"abc":2,"":3})", R"({"é":1})"},
        {R"({"ab":1})", R"({"a":1})", R"({"\u0061":1})", R"({"x":null})", R"({"x":1,"a":null})"});
  Check(R"({"type":"object","additionalProperties":true})", {"{}", R"({"x":[1]})"}, {"[]"});
  Check(R"({"required":["k"],"additionalProperties":{"type":"integer"}})",
        {R"({"k":1})", R"({"k":1,"l":2})"}, {"{}", R"({"l":2})"});
}

TEST(JsonSchema, Arrays) {
  Check(R"({"type":"array","items":{"type":"null"},"minItems":1,"maxItems":3})",
        {"[null]", "[null, null]", "[ null,null,null ]"},
        {"[]", "[null,null,null,null]", "[null,]", "[,null]"});
  Check(R"({"items":{"type":"null"},"maxItems":0})", {"[]", "[ ]"}, {"[null]"});
  Check(R"({"prefixItems":[{"const":1},{"const":"x"}],"items":{"type":"null"},"minItems":1})",
        {"[1]", R"([1,"x"])", R"([1, "x", null, null])"}, {"[]", "[1,null]", R"(["x"])"});
  Check(R"({"prefixItems":[{"const":1}],"items":false})", {"[]", "[1]"}, {"[1,1]"});
  Check(R"({"prefixItems":[{"const":1}],"minItems":2})", {"[1,{}]"}, {"[1]"});
}

TEST(JsonSchema, Strings) {
  Check(R"({"type":"string","minLength":2,"maxLength":3})",
        {R"("ab")", R"("aé\n")", R"("\u00e9\\")"}, {R"("a")", R"("abcd")", R"("ab)", "ab"});
  Check(R"({"type":"string","pattern":"^[A-Z]{2}\\d+(-[a-z]|x)?$"})",
        {R"("AB1")", R"("AB12-c")", R"("AB12x")"},
        {R"("A1")", R"("AB")", R"("AB1-")", R"("AB1 ")"});
  Check(R"({"pattern":"b|^a$"})", {R"("b")", R"("xby")", R"("a")"}, {R"("xa")", R"("")"});
  Check(R"({"pattern":"^[^a]\"\\\\.$"})", {R"("b\"\\c")", R"("\"\"\\\\")"}, {R"("a\"\\c")"});
  Check(R"({"format":"date"})", {R"("2024-12-31")"}, {R"("2024-02-30")", R"("2024-1-1")"});
  Check(R"({"format":"date-time"})", {R"("2024-12-31T23:59:59.5Z")"}, {R"("2024-12-31")"});
  Check(R"({"format":"uuid"})", {R"("01234567-89ab-cdef-0123-456789ABCDEF")"}, {R"("x")"});
  Check(R"({"format":"email"})", {R"("a.b@ex-ample.com")"}, {R"("a@b")", R"("@b.com")"});
  Check(R"({"format":"ipv4"})", {R"("255.0.10.1")"}, {R"("256.0.0.1")", R"("1.2.3")"});
}

TEST(JsonSchema, FormatsOfPydantic) {
  Check(R"({"format":"uuid7"})", {R"("01234567-89ab-7def-8123-456789ABCDEF")"},
        {R"("01234567-89ab-4def-8123-456789ABCDEF")", R"("01234567-89ab-7def-0123-456789ABCDEF")"});
  Check(R"({"format":"ipv4network"})",
        {R"("10.0.0.0/8")", R"("10.192.0.0/10")", R"("10.1.2.3")", R"("0.0.0.0/0")",
         R"("10.1.2.254/31")"},
        {R"("10.1.0.0/8")", R"("10.32.0.0/10")", R"("10.0.0.0/33")", R"("10.1.2.3/31")"});
  Check(R"({"format":"ipvanynetwork"})", {R"("2001:db8::/32")", R"("::/0")", R"("10.0.0.0/8")"},
        {R"("2001:db8:1::/32")", R"("2001:db8::/129")"});
  Check(R"({"format":"ipvanyinterface"})", {R"("10.1.2.3/8")", R"("::1/64")", R"("::1")"},
        {R"("10.1.2.3/64")"});
  Check(R"({"format":"base64"})", {R"("")", R"("aGk=")", R"("+/==")"}, {R"("aGk")", R"("a_8=")"});
  Check(R"({"format":"base64url"})", {R"("a_8=")"}, {R"("a/8=")", R"("a===")"});
  Check(R"({"format":"multi-host-uri","minLength":1})",
        {R"("postgres://u:p@a:1,b:2/db?x=y")", R"("mongodb://a")"}, {R"("postgres:///db")"});
  Check(R"({"format":"name-email"})", {R"("Ada <a@b.org>")", R"("a@b.org")"}, {R"("Ada <a>")"});
  Check(R"({"format":"uri-reference"})",
        {R"("../a?b#c")", R"("")", R"("https://a.b/c")", R"("//a/b")"}, {R"("a b")", R"("1:b")"});
  Check(R"({"format":"json-pointer"})", {R"("")", R"("/a~1b/0")"}, {R"("a")", R"("/~2")"});
}

// An annotation: it asks for nothing, wherever it stands.
TEST(JsonSchema, FormatsThatAreNotKnownAreNotes) {
  for (const char* format : {"phone", "color", "password", "iri", "x-mine", "path", ""}) {
    Check(fmt::format(R"({{"type":"string","format":"{}"}})", format),
          {R"("")", R"("any \" text")"}, {"1"});
    Check(fmt::format(R"({{"format":"{}","pattern":"^a","maxLength":2}})", format),
          {R"("ab")", "1"}, {R"("b")", R"("abc")"});
  }
  EXPECT_THAT(SchemaError(R"({"type":"string","not":{"format":"phone"}})"),
              testing::HasSubstr("no value matches it"));
}

TEST(JsonSchema, IntegersWithinBounds) {
  for (const auto& [low, high] :
       {std::pair{0, 9}, {1, 12}, {-5, 5}, {-120, -3}, {99, 101}, {7, 7}, {-1000, 999}}) {
    const auto schema = fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", low, high);
    const auto grammar = JsonSchemaGrammar(schema);
    ASSERT_TRUE(grammar.ok());
    Language language(*grammar);
    for (int value = -1500; value <= 1500; ++value) {
      ASSERT_EQ(language.Has(std::to_string(value)), value >= low && value <= high) << value;
    }
    EXPECT_FALSE(language.Has("-0") || language.Has("00") || language.Has(""));
  }
  Check(R"({"type":"integer","exclusiveMinimum":3})", {"4", "1000"}, {"3", "0", "-4"});
  Check(R"({"type":"number","minimum":0,"exclusiveMaximum":2})", {"0", "1", "0.5"},
        {"2", "-1", "2.5", "-0.5"});
  Check(R"({"type":"number","minimum":-2,"maximum":2})", {"-2", "2", "-1.99", "1.99", "-0.5"},
        {"-2.1", "2.1", "3"});
}

TEST(JsonSchema, Alternatives) {
  Check(R"({"enum":["a",1,null,{"b":[2]}]})", {R"("a")", "1", "null", R"({"b":[2]})"}, {"2"});
  Check(R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"});
  Check(R"({"type":["string","null"],"maxLength":1})", {"null", R"("a")"}, {R"("ab")"});
  Check(R"({"anyOf":[{"type":"integer"},{"type":"boolean"}]})", {"1", "true"}, {"null"});
  Check(R"({"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"],"type":"object"},
                     {"properties":{"k":{"const":"b"}},"required":["k"],"type":"object"}]})",
        {R"({"k":"a"})", R"({"k":"b"})"}, {R"({"k":"c"})"});
  Check(R"({"allOf":[{"$ref":"#/$defs/x"},{"properties":{"b":{"type":"null"}}}],
            "$defs":{"x":{"type":"object","properties":{"a":{"const":1}},"required":["a"]}}})",
        {R"({"a":1})", R"({"a":1,"b":null})"}, {"{}", R"({"b":null})"});
  Check("true", {"1", "[{}]"}, {"x"});
}

TEST(JsonSchema, Recursion) {
  Check(R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{
            "v":{"type":"integer"},"next":{"$ref":"#/$defs/node"}},"required":["v"]}}})",
        {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"}, {R"({"v":1,"next":1})"});
  Check(R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"});
  // A node must have another, without end: no value matches.
  EXPECT_THAT(SchemaError(R"({"type":"object","required":["n"],"properties":{"n":{"$ref":"#"}}})"),
              testing::HasSubstr("no value matches it"));
}

TEST(JsonSchema, NumbersOfAnyBounds) {
  Check(R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})",
        {"9007199254740991", "-9007199254740991", "0", "17"},
        {"9007199254740992", "-9007199254740992", "10000000000000000", "1.0", "-0"});
  Check(R"({"type":"integer","minimum":9223372036854775807,"maximum":18446744073709551615})",
        {"9223372036854775807", "18446744073709551615"},
        {"9223372036854775806", "18446744073709551616", "9"});
  Check(R"({"type":"number","exclusiveMinimum":0.05,"maximum":1e3})",
        {"0.051", "0.5", "999.999", "1000", "1000.0"}, {"0.05", "0", "-1", "1000.01", "1e2"});
  Check(R"({"type":"integer","multipleOf":15,"minimum":-20})", {"-15", "0", "15", "1065"},
        {"-30", "1", "100"});
  Check(R"({"type":"number","multipleOf":0.01})", {"0.5", "12", "3.140"}, {"3.141"});
  Check(R"({"type":"number","not":{"type":"integer"}})", {"0.5", "-2.25"}, {"1", "1.0"});
  Check(R"({"type":"integer","not":{"enum":[1,2.0]},"maximum":3})", {"3", "0", "-1"}, {"1", "2"});
}

TEST(JsonSchema, StringsOfSeveralDemands) {
  Check(R"({"type":"string","pattern":"^[a-z][a-z0-9]*$","minLength":3,"maxLength":5})",
        {R"("abc")", R"("a1234")"}, {R"("ab")", R"("a12345")", R"("1abc")"});
  Check(R"({"type":"string","pattern":"^(ab|c)*$","minLength":3,"maxLength":4})",
        {R"("abc")", R"("abab")", R"("ccc")"}, {R"("ab")", R"("ababc")"});
  Check(R"({"type":"string","format":"date","pattern":"^2024-"})", {R"("2024-02-29")"},
        {R"("2023-01-01")", R"("2024-02-30")"});
  Check(R"({"type":"string","allOf":[{"pattern":"^x"},{"pattern":"y$"},{"maxLength":3}]})",
        {R"("xy")", R"("x\"y")"}, {R"("xaay")", R"("x")"});
  Check(R"({"type":"string","format":"uri","minLength":1,"maxLength":2083})",
        {R"("https://example.org/?q=1")"}, {R"("no uri")", R"("")"});
  Check(R"({"type":"string","not":{"enum":["a","b"]},"maxLength":1})", {R"("c")", R"("")"},
        {R"("a")", R"("cc")"});
  Check(R"({"type":"string","pattern":"^[\\u0001\\n]$"})", {R"("\u0001")", R"("\n")"},
        {R"("\u0002")", "\"\x01\""});
  Check(R"({"enum":["abc","xyz",3],"pattern":"^a"})", {R"("abc")", "3"}, {R"("xyz")"});
  EXPECT_THAT(SchemaError(R"({"type":"string","format":"uuid","maxLength":35})"),
              testing::HasSubstr("no value matches it"));
}

TEST(JsonSchema, StringsOfUnicodeProperties) {
  // As zod 4.6 writes z.emoji(), and as zod 4.1 did.
  Check(R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string",
            "format":"emoji",
            "pattern":"^(?=[\\s\\S]*[\\p{Extended_Pictographic}\\p{Regional_Indicator}\\u20E3]))"
        R"([\\p{Extended_Pictographic}\\p{Emoji_Component}]+$"})",
        {R"("😀")", R"("👍🏽🇩🇪❤️")", R"("👩‍💻")", R"("7️⃣")"},
        {R"("")", R"("7")", R"("a")", R"("😀 ")", R"("€")"});
  Check(R"({"type":"string","format":"emoji",
            "pattern":"^(\\p{Extended_Pictographic}|\\p{Emoji_Component})+$"})",
        {R"("😀")", R"("👍🏽🇩🇪❤️")", R"("👩‍💻")", R"("7")"},
        {R"("")", R"("a")", R"("😀 ")", R"("€")"});
  Check(R"({"type":"string","pattern":"^[\\p{L}\\p{M}' -]+$"})",
        {R"("José O'Neill")", R"("Ольга-中𝒜")"}, {R"("R2")", R"("")", R"("😀")"});
  Check(R"({"type":"string","pattern":"^\\P{L}+$"})", {R"("1 \"\\\n😀")"}, {R"("1é")", "\"\n\""});
  Check(R"({"type":"string","pattern":"^\\p{Cc}{2}$"})", {R"("\n\u0001")", "\"\\t\u0085\""},
        {R"("a\n")", "\"\x01\x01\""});
  Check(R"({"type":"string","pattern":"^\\p{Lu}(\\p{L}| \\p{L})*$","minLength":3,"maxLength":5})",
        {R"("Éa é")", R"("ЖЖЖЖЖ")"}, {R"("Éa")", R"("Éa éaa")", R"("éaa")", R"("Éa  ")"});
  Check(R"({"type":"object","patternProperties":{"^\\p{L}{1,30}$":{"type":"integer"}},
            "additionalProperties":false})",
        {R"({"é":1,"中文":2})"}, {R"({"é2":1})", R"({"é":"x"})"});
  EXPECT_THAT(SchemaError(R"({"properties":{"a":{"pattern":"\\p{Greek}"}}})"),
              testing::HasSubstr("schema, at /properties/a: the pattern '\\p{Greek}' asks for the "
                                 "Unicode property 'Greek', which is not known"));
}

// Letters are hundreds of ranges, which a grammar has once.
TEST(JsonSchema, ClassesOfManyRangesAreWrittenOnce) {
  const auto size_of = [](int members) {
    std::string properties;
    for (int i = 0; i < members; ++i) {
      properties += fmt::format(R"("m{}":{{"pattern":"^\\p{{L}}+{}$"}},)", i, i);
    }
    properties.pop_back();
    const auto grammar = JsonSchemaGrammar(fmt::format(R"({{"properties":{{{}}}}})", properties));
    EXPECT_TRUE(grammar.ok());
    return grammar->size();
  };
  const std::size_t one = size_of(1);
  EXPECT_GT(one, 8'000);
  EXPECT_LT(size_of(20), one + 6'000);
}

TEST(JsonSchema, PropertiesByName) {
  Check(R"({"type":"object","properties":{"a":{"type":"null"}},
            "patternProperties":{"^n_":{"type":"integer"},"x$":{"maximum":9}},
            "additionalProperties":false})",
        {R"({"a":null,"n_1":10})", R"({"n_x":9})", R"({"x":true})"},
        {R"({"n_x":10})", R"({"b":1})", R"({"n_":"s"})"});
  Check(R"({"type":"object","propertyNames":{"enum":["a","b"]},
            "additionalProperties":{"type":"integer"}})",
        {"{}", R"({"b":1,"a":2})"}, {R"({"c":1})"});
  Check(R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$","maxLength":3},
            "minProperties":1,"maxProperties":2})",
        {R"({"a":1})", R"({"abc":[],"b":{}})"}, {"{}", R"({"abcd":1})", R"({"a":1,"b":1,"c":1})"});
  Check(R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,
            "dependentRequired":{"a":["c"]}})",
        {"{}", R"({"b":1})", R"({"a":1,"c":1})"}, {R"({"a":1})", R"({"a":1,"b":1})"});
}

TEST(JsonSchema, CountedAndUniqueItems) {
  Check(R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":10},"maxContains":2})",
        {"[10]", "[1,12,3,11]"}, {"[]", "[1]", "[10,11,12]"});
  Check(R"({"type":"array","contains":{"const":"x"},"minContains":2,"maxItems":3})",
        {R"(["x","x"])", R"(["x",1, "x"])"}, {R"(["x"])", R"(["x",1,2,"x"])"});
  Check(R"({"type":"array","items":{"enum":["a","b",1]},"uniqueItems":true,"minItems":1})",
        {R"(["b"])", R"([1,"a", "b"])"}, {"[]", R"(["a","a"])", R"(["a",1,"b","a"])"});
  Check(R"({"type":"array","items":{"type":"integer","minimum":1,"maximum":3},"uniqueItems":true})",
        {"[]", "[3,1,2]"}, {"[1,1]", "[4]"});
  Check(R"({"type":"array","prefixItems":[{"type":"boolean"},{"type":"boolean"}],"items":false,
            "uniqueItems":true})",
        {"[true,false]", "[false]"}, {"[true,true]", "[true,false,true]"});
  Check(R"({"type":"array","items":{"type":"string"},"maxItems":1,"uniqueItems":true})",
        {R"(["x"])"}, {R"(["x","y"])"});
}

// Where the values are many, or not known.
TEST(JsonSchema, UniqueItemsOfManyValues) {
  Check(R"({"type":"array","items":{"type":"string"},"uniqueItems":true,"minItems":1})",
        {R"(["x"])", R"(["x", "y","xy"])", R"(["é","e","\"","\n"])"},
        {"[]", R"(["x","x"])", R"(["x" ,"y","x" ])", R"(["\u0078","y"])"});
  Check(R"({"uniqueItems":true})",
        {"[1,12,1.5,-1,0]", "[[1],[[1]],{}]", R"([{"a":1,"b":2},{"a":2,"b":1}])", "\"x\"",
         R"({"a":[1,1]})"},
        {"[1,2,1]", "[1,1.0]", "[0,-0]", "[1e0,2]", "[[],[ ]]", R"([{"a":1,"b":2},{"b":2,"a":1}])",
         R"([{"a":1},{"a":2,"a":1}])"});
  Check(R"({"items":{"type":"number","minimum":0.5},"uniqueItems":true})",
        {"[0.5,0.75,1]", "[12.5,12.25]"}, {"[0.5,0.50]", "[1,1.0]", "[0.5,0.5]", "[2,3,2]"});
  Check(R"({"items":{"type":"array","items":{"type":"integer"}},"uniqueItems":true})",
        {"[[1,1],[1]]", "[[],[0]]"}, {"[[1,1],[1, 1]]"});
  Check(R"({"items":{"type":"object","properties":{"name":{"type":"string"},"tags":
            {"type":"array","items":{"type":"string"},"uniqueItems":true}},"required":["name"],
            "additionalProperties":false},"uniqueItems":true})",
        {R"([{"name":"a","tags":["x","y"]},{"name":"a","tags":["x"]},{"name":"a"}])"},
        {R"([{"name":"a","tags":["x","x"]}])", R"([{"name":"a"},{"name": "a"}])"});
  Check(R"({"items":{"pattern":"^[a-k]$","type":"string"},"uniqueItems":true,"minItems":2})",
        {R"(["a","b"])"}, {R"(["a"])", R"(["a","a"])"});
  Check(R"({"type":"array","prefixItems":[{"type":"string"},{"const":"x"}],"uniqueItems":true,
            "contains":{"type":"integer"}})",
        {R"(["y","x",1])", R"(["y","x",1,"z",2])"},
        {R"(["x","x",1])", R"(["y","x","z"])", R"(["y","x",1,1])"});
}

TEST(JsonSchema, OlderDrafts) {
  Check(R"({"type":"array","items":[{"const":1},{"type":"string"}],"additionalItems":false})",
        {"[1]", R"([1,"x"])"}, {"[2]", R"([1,"x",1])"});
  Check(R"({"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false,
            "dependencies":{"a":["b"],"b":{"properties":{"b":{"const":1}}}}})",
        {"{}", R"({"a":0,"b":1})", R"({"b":1})"}, {R"({"a":0})", R"({"b":2})"});
}

TEST(JsonSchema, Conditions) {
  Check(R"({"type":"object","properties":{"country":{"enum":["US","DE"]},"zip":{"type":"string"}},
            "required":["country","zip"],"additionalProperties":false,
            "if":{"properties":{"country":{"const":"US"}}},
            "then":{"properties":{"zip":{"pattern":"^[0-9]{5}$"}}},
            "else":{"properties":{"zip":{"maxLength":2}}}})",
        {R"({"country":"US","zip":"12345"})", R"({"country":"DE","zip":"x"})"},
        {R"({"country":"US","zip":"x"})", R"({"country":"DE","zip":"12345"})"});
  Check(R"({"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]})", {"1", "2.5", "-3"},
        {"3", "1.5", "null"});
  Check(R"({"type":"object","not":{"required":["a","b"]},"properties":{"a":{},"b":{}},
            "additionalProperties":false})",
        {"{}", R"({"a":1})", R"({"b":1})"}, {R"({"a":1,"b":1})"});
  Check(R"({"not":{"const":{"a":[1]}},"type":"object"})",
        {"{}", R"({"a":[2]})", R"({"a":[1],"b":1})", R"({"a":[1,1]})"}, {R"({"a":[1]})"});
  Check(R"({"$ref":"#/$defs/n","minimum":3,"$defs":{"n":{"type":"integer","maximum":4}}})",
        {"3", "4"}, {"2", "5"});
  Check(R"({"type":["object","null"],"properties":{"a":false},"required":["a"]})", {"null"},
        {"{}", R"({"a":1})"});
}

TEST(JsonSchema, RefusesByName) {
  using testing::HasSubstr;
  EXPECT_THAT(SchemaError("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(SchemaError("3"), HasSubstr("a schema is an object, true or false"));
  EXPECT_THAT(
      SchemaError(R"({"properties":{"a":{"unevaluatedItems":false}}})"),
      HasSubstr("schema, at /properties/a: the keyword 'unevaluatedItems' is not supported"));
  EXPECT_THAT(SchemaError(R"({"items":3})"), HasSubstr("'items' must be a schema"));
  EXPECT_THAT(SchemaError(R"({"minLength":-1})"), HasSubstr("must be a whole number from 0 on"));
  EXPECT_THAT(SchemaError(R"({"type":"text"})"), HasSubstr("the type \"text\" is not known"));
  EXPECT_THAT(SchemaError(R"x({"pattern":"(?<a>b)"})x"), HasSubstr("the group '(?<a'"));
  EXPECT_THAT(SchemaError(R"({"pattern":"\\bx"})"), HasSubstr("the escape '\\b'"));
  EXPECT_THAT(SchemaError(R"({"pattern":"(a"})"), HasSubstr("never closed"));
  EXPECT_THAT(SchemaError(R"({"multipleOf":0})"), HasSubstr("must be a number above zero"));
  EXPECT_THAT(SchemaError(R"({"multipleOf":0.123456789})"),
              HasSubstr("'multipleOf' has more digits"));
  EXPECT_THAT(
      SchemaError(R"({"type":"array","items":{"pattern":"^[a-k]$","type":"string"},
                              "uniqueItems":true,"minItems":12})"),
      HasSubstr("'uniqueItems' asks for 12 items that differ, but one of them has only 11"));
  EXPECT_THAT(SchemaError(R"({"not":{"propertyNames":{"maxLength":1}}})"),
              HasSubstr("'propertyNames' is not supported where it must not hold"));
  EXPECT_THAT(SchemaError(R"({"$ref":"#/$defs/x"})"), HasSubstr("'#/$defs/x', which is not there"));
  EXPECT_THAT(SchemaError(R"({"$ref":"http://x"})"), HasSubstr("must name a place"));
  EXPECT_THAT(SchemaError(R"({"$schema":"http://x"})"), HasSubstr("'$schema'"));
  EXPECT_THAT(SchemaError(R"({"type":"object","required":["a"],"additionalProperties":false})"),
              HasSubstr("no value matches it"));
  EXPECT_THAT(SchemaError(R"({"minLength":1000000})"), HasSubstr("more than 20000 characters"));
  EXPECT_THAT(SchemaError("false"), HasSubstr("no value matches it"));
  EXPECT_THAT(SchemaError(std::string(1000, '[')), HasSubstr("nested too deep"));
}

// Schemas that would take minutes otherwise.
TEST(JsonSchema, RefusesWhatWouldTakeLong) {
  using testing::HasSubstr;
  std::string members;
  for (int i = 0; i <= 20000; ++i) members += fmt::format(R"("p{}":{{}},)", i);
  members.pop_back();
  EXPECT_THAT(SchemaError(fmt::format(R"({{"properties":{{{}}}}})", members)),
              HasSubstr("more than 1000 members"));

  std::string levels;
  for (int i = 0; i < 40; ++i) {
    levels +=
        fmt::format(R"("l{}":{{"allOf":[{{"$ref":"#/$defs/l{}"}},{{"$ref":"#/$defs/l{}"}}]}},)", i,
                    i + 1, i + 1);
  }
  // Each schema is looked at once.
  EXPECT_EQ(SchemaError(R"({"$ref":"#/$defs/l0","$defs":{)" + levels + R"("l40":{}}})"),
            "no error");
  std::string pairs;
  for (int i = 0; i < 20; ++i) {
    pairs += fmt::format(R"({{"anyOf":[{{"required":["a{}"]}},{{"required":["b{}"]}}]}},)", i, i);
  }
  pairs.pop_back();
  EXPECT_THAT(SchemaError(R"({"allOf":[)" + pairs + "]}"), HasSubstr("more than 512 ways"));

  std::string choices;
  for (int i = 0; i < 6000; ++i) choices += fmt::format(R"({{"const":{}}},)", i);
  choices.pop_back();
  EXPECT_THAT(SchemaError(R"({"oneOf":[)" + choices + "]}"), HasSubstr("too intricate"));
}

}  // namespace
}  // namespace foretoken
