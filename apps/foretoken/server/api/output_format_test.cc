#include "apps/foretoken/server/api/output_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foretoken/json_schema.h"

namespace foretoken::server {
namespace {

using ::testing::HasSubstr;

Result<OutputFormat> ReadFormat(const std::string& body) {
  std::vector<std::string> unknown;
  return ParseFields<OutputFormat>(body, &unknown, [&](FieldReader* fields, OutputFormat* format) {
    ReadOutputFormat(body, fields, format);
    ReadFormatsOfOthers(body, fields, format);
  });
}

// Its properties are in another order than that of the alphabet, which a grammar keeps.
constexpr char kSchema[] =
    R"({"type":"object","properties":{"b":{"const":1},"a":{"const":2}},"required":["b","a"],)"
    R"("additionalProperties":false})";

TEST(OutputFormat, ASchemaInEveryFormThatServersHaveIsKeptTo) {
  const std::string schema = kSchema;
  const std::string as_text = Json(schema).dump();
  const std::string grammar = *JsonSchemaGrammar(schema);
  const std::pair<std::string, std::string> forms[] = {
      {R"({"response_format":{"type":"json_object","schema":)" + schema + "}}",
       "response_format.schema"},
      {R"({"response_format":{"type":"json_schema","schema":)" + schema + "}}",
       "response_format.schema"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" + schema +
           "}}}",
       "response_format.json_schema.schema"},
      {R"({"json_schema":)" + schema + "}", "json_schema"},
      {R"({"json_schema":)" + as_text + "}", "json_schema"},
      {R"({"format":)" + schema + "}", "format"},
      {R"({"guided_json":)" + schema + "}", "guided_json"},
      {R"({"guided_json":)" + as_text + "}", "guided_json"},
      {R"({"structured_outputs":{"json":)" + schema + "}}", "structured_outputs.json"}};
  for (const auto& [body, field] : forms) {
    const Result<OutputFormat> format = ReadFormat(body);
    ASSERT_TRUE(format.ok()) << body << ": " << format.error().message;
    EXPECT_EQ(format->grammar, grammar) << body;
    EXPECT_EQ(format->field, field);
  }
}

TEST(OutputFormat, AnyObjectAndChoicesAndGrammars) {
  EXPECT_EQ(ReadFormat(R"({"format":"json"})")->grammar, JsonObjectGrammar());
  EXPECT_EQ(ReadFormat(R"({"structured_outputs":{"json_object":true}})")->grammar,
            JsonObjectGrammar());
  EXPECT_EQ(ReadFormat(R"({"guided_choice":["yes","n\"o\n"]})")->grammar,
            R"(root ::= "yes" | "n\x22o\x0A")");
  EXPECT_EQ(ReadFormat(R"({"structured_outputs":{"choice":["é"]}})")->grammar, R"(root ::= "é")");
  EXPECT_EQ(ReadFormat(R"({"guided_grammar":"root ::= \"a\""})")->grammar, R"(root ::= "a")");
  EXPECT_EQ(ReadFormat(R"({"ebnf":"root ::= \"a\""})")->field, "ebnf");
  EXPECT_EQ(ReadFormat(R"({"format":"","guided_json":null})")->field, "");
}

TEST(OutputFormat, WhatCannotBeKeptToIsRefused) {
  const auto refused = [](const std::string& body, const std::string& field,
                          const std::string& saying) {
    const Result<OutputFormat> format = ReadFormat(body);
    ASSERT_FALSE(format.ok()) << body;
    EXPECT_EQ(format.error().field, field);
    EXPECT_THAT(format.error().message, HasSubstr(saying));
  };
  refused(R"({"guided_regex":"a+"})", "guided_regex", "holds outputs to a JSON Schema");
  refused(R"({"structured_outputs":{"regex":"a+"}})", "structured_outputs.regex", "a grammar");
  refused(R"({"structured_outputs":{"later":1}})", "structured_outputs.later", "later");
  refused(R"({"response_format":{"type":"json_object","later":1}})", "response_format.later",
          "later");
  refused(R"({"response_format":{"type":"structural_tag"}})", "response_format.type",
          "text, json_object or json_schema");
  refused(R"({"format":"yaml"})", "format", "the schema");
  refused(R"({"guided_choice":[]})", "guided_choice", "an array of strings");
  refused(R"({"guided_json":{},"guided_choice":["a"]})", "guided_choice", "contradict");
  refused(R"({"grammar":"root ::= \"a\"","structured_outputs":{"json":{}}})",
          "structured_outputs.json", "'grammar' and 'json' contradict");
}

}  // namespace
}  // namespace foretoken::server
