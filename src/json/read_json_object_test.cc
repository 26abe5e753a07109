#include "json/read_json_object.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

TEST(ParseJsonObject, ReadsBesideNumbersThatOnlyPythonWrites) {
  const auto json = ParseJsonObject(
      R"({"limit": [0.0, Infinity], "low": -Infinity, "none": NaN, "NaN": "Infinity \" NaN", "n": 3})",
      "config.json");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["limit"], Json({0.0, "Infinity"}));
  EXPECT_EQ((*json)["low"], "-Infinity");
  EXPECT_EQ((*json)["none"], "NaN");
  EXPECT_EQ((*json)["NaN"], "Infinity \" NaN");
  EXPECT_EQ((*json)["n"], 3);
}

TEST(ParseJsonObject, RefusesWhatIsNone) {
  using namespace std::string_literals;
  for (const std::string& text :
       {""s, "[1]"s, "{"s, "Infinity"s, "{\"a\": Infinit}"s, "{\"a\": Infinity"s, "{\"NaN"s,
        "{\"a\": \"NaN\\"s, "{\"a\": NaN, \"b\": +Infinity}"s, "{\"a\": NaNNaN}"s, "{}\0"s}) {
    const auto json = ParseJsonObject(text, "config.json");
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.error().message, "config.json: is not a JSON object");
  }
}

}  // namespace
}  // namespace foretoken
