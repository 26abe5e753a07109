#include "foretoken/json_schema.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grammar/automaton.h"
#include "grammar/grammar.h"
#include "grammar/state_graph.h"

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
  bool Has(std::string_view text) { return graph_->MayEnd(graph_->Next(graph_->start(), text)); }

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
      "b":{"type":"boolean"},"c":{"type":"null"}},"required":["b"]})";
  Check(schema, {R"({"b":true})", R"({"a": 1,"b":false})", R"({"a":1, "b":true, "c":null })"},
        {"{}", R"({"a":1})", R"({"b":true,"a":1})", R"({"b":true,})", R"({,"b":true})",
         R"({"b":true,"d":1})", R"({"a":1 "b":true})"});
  Check(
      R"({"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}}})",
      {"{}", R"({"a":null})", R"({"c":null})", R"({"a":null,"c":null})", R"({"b":null,"c":null})"},
      {R"({"c":null,"a":null})", R"({"a":null "b":null})"});
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
  Check(R"({"items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"});
}

TEST(JsonSchema, RefusesByName) {
  using testing::HasSubstr;
  EXPECT_THAT(SchemaError("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(SchemaError("3"), HasSubstr("must be an object, true or false"));
  EXPECT_THAT(SchemaError(R"({"properties":{"a":{"not":{}}}})"),
              HasSubstr("schema, at /properties/a: the keyword 'not' is not supported"));
  for (const char* keyword : {"multipleOf", "uniqueItems", "patternProperties", "if", "contains"}) {
    EXPECT_THAT(SchemaError(fmt::format(R"({{"{}":2}})", keyword)), HasSubstr(keyword));
  }
  EXPECT_THAT(SchemaError(R"({"type":"text"})"), HasSubstr("the type \"text\" is not known"));
  EXPECT_THAT(SchemaError(R"({"format":"hostname"})"), HasSubstr("format \"hostname\""));
  EXPECT_THAT(SchemaError(R"x({"pattern":"(?=a)"})x"), HasSubstr("the group '(?=a'"));
  EXPECT_THAT(SchemaError(R"({"pattern":"\\bx"})"), HasSubstr("the escape '\\b'"));
  EXPECT_THAT(SchemaError(R"({"pattern":"(a"})"), HasSubstr("never closed"));
  EXPECT_THAT(SchemaError(R"({"pattern":"a","maxLength":2})"), HasSubstr("only one of"));
  EXPECT_THAT(SchemaError(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"),
              HasSubstr("0 and 1 may overlap"));
  EXPECT_THAT(SchemaError(R"({"$ref":"#/$defs/x"})"), HasSubstr("'#/$defs/x', which is not there"));
  EXPECT_THAT(SchemaError(R"({"$ref":"http://x"})"), HasSubstr("must name a place"));
  EXPECT_THAT(SchemaError(R"({"$ref":"#","minLength":1})"), HasSubstr("'minLength' beside '$ref'"));
  EXPECT_THAT(SchemaError(R"({"required":["a"],"additionalProperties":false})"),
              HasSubstr("'a' is required but may not be there"));
  EXPECT_THAT(SchemaError(R"({"type":"integer","minimum":3,"maximum":2})"), HasSubstr("bounds"));
  EXPECT_THAT(SchemaError(R"({"minLength":1000000})"), HasSubstr("20000 at most"));
  EXPECT_THAT(SchemaError("false"), HasSubstr("matches nothing"));
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
  EXPECT_THAT(SchemaError(R"({"$ref":"#/$defs/l0","$defs":{)" + levels + R"("l40":{}}})"),
              HasSubstr("too intricate"));

  std::string choices;
  for (int i = 0; i < 6000; ++i) choices += fmt::format(R"({{"const":{}}},)", i);
  choices.pop_back();
  EXPECT_THAT(SchemaError(R"({"oneOf":[)" + choices + "]}"), HasSubstr("too intricate"));
}

}  // namespace
}  // namespace foretoken
