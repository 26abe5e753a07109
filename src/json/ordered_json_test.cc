#include "json/ordered_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

TEST(ParseOrdered, MakesWhatTheLibraryMakes) {
  for (const char* text :
       {"null", "true", "-7", "7", "18446744073709551615", "-9223372036854775808", "1.5e300",
        R"("a\u00e9\n")", "[]", "{}", R"([1, [2, {"a": [[]]}], "x"])",
        R"({"z": 1, "a": {"y": [1, {"b": null}], "x": false}, "m": "text"})",
        R"({"a": 1, "b": 2, "a": {"c": 3}})", R"({"": {"": []}})"}) {
    EXPECT_EQ(ParseOrdered(text), Json::parse(text)) << text;
    EXPECT_EQ(ParseOrdered(text).dump(), Json::parse(text).dump()) << text;
  }
}

TEST(ParseOrdered, RefusesWhatIsNoJson) {
  for (const char* text :
       {"", "{", "[1,", "[1 2]", "{\"a\"}", "nul", "1 2", "{\"a\": 1}}", "'a'"}) {
    EXPECT_TRUE(ParseOrdered(text).is_discarded()) << text;
  }
}

// The library takes minutes for this one.
TEST(ParseOrdered, TakesNoLongerForManyMembers) {
  constexpr int kMembers = 300'000;
  std::string text = "{";
  for (int i = 0; i < kMembers; ++i) text += fmt::format("{}\"{:x}\":1", i == 0 ? "" : ",", i);
  text += "}";
  const auto start = std::chrono::steady_clock::now();
  const Json json = ParseOrdered(text);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(json.size(), static_cast<std::size_t>(kMembers));
  EXPECT_EQ(json.begin().key(), "0");
}

}  // namespace
}  // namespace foretoken
