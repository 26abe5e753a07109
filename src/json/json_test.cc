#include "json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "json/json_events.h"

namespace foretoken {
namespace {

using testing::ElementsAre;

TEST(Json, ListsOfInitialisersAreObjectsOrArrays) {
  const Json json = {{"a", 1},
                     {"b", {1, 2.5, "x", nullptr, true}},
                     {"c", {{"d", Json::array({1})}}},
                     {"e", Json::array({{"f", 2}})},
                     {"g", std::vector<int>{1, 2}}};
  EXPECT_EQ(json.dump(),
            R"({"a":1,"b":[1,2.5,"x",null,true],"c":{"d":[1]},"e":[["f",2]],"g":[1,2]})");
  EXPECT_EQ(Json::Parse(json.dump()), json);
  EXPECT_EQ(Json::object({{"a", Json::object()}}).dump(2), "{\n  \"a\": {}\n}");
  EXPECT_THROW(Json::object({1, 2}), Json::Error);
}

TEST(Json, ValuesAreReadAsTheyAreOrThrow) {
  const Json json = Json::Parse(R"({"n":-3,"u":18446744073709551615,"f":0.5,"s":"t","b":true,
                                    "v":[1,2],"o":{"x":1}})");
  EXPECT_EQ(json["n"].get<int>(), -3);
  EXPECT_EQ(json["u"].get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json["f"].get<double>(), 0.5);
  EXPECT_EQ(json["f"].get<int>(), 0);
  EXPECT_EQ(json["s"].text(), "t");
  EXPECT_TRUE(json["b"].get<bool>());
  EXPECT_THAT(json["v"].get<std::vector<int>>(), ElementsAre(1, 2));
  EXPECT_EQ((json["o"].get<std::map<std::string, int>>()["x"]), 1);
  EXPECT_EQ(json.value("n", 7), -3);
  EXPECT_EQ(json.value("none", 7), 7);
  EXPECT_TRUE(json["none"].is_null());
  EXPECT_THROW(json["s"].get<int>(), Json::Error);
  EXPECT_THROW(json["n"].get<bool>(), Json::Error);
  EXPECT_THROW(json["n"].text(), Json::Error);
  EXPECT_THROW(json.at("none"), Json::Error);
  EXPECT_THROW(json["v"][2], Json::Error);
}

TEST(Json, NumbersAreEqualByValueAndObjectsWhateverTheirOrder) {
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_EQ(Json(1), Json(1U));
  EXPECT_NE(Json(-1), Json(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json::Discarded(), Json::Discarded());
  EXPECT_EQ(Json::Parse(R"({"a":1,"b":[2]})"), Json::Parse(R"({"b":[2.0],"a":1})"));
  EXPECT_NE(Json::Parse(R"({"a":1})"), Json::Parse(R"({"a":1,"b":2})"));
  EXPECT_TRUE(Json(3) > 2 && Json(0.5) < 1);
}

TEST(Json, MembersKeepTheirOrderAndTheLastOfANameCounts) {
  EXPECT_EQ(Json::Parse(R"({"b":1,"a":2,"b":3})").dump(), R"({"b":3,"a":2})");
  Json json = {{"z", 1}, {"y", {{"b", 1}, {"a", 2}}}};
  json["x"] = 3;
  EXPECT_EQ(json.dump(), R"({"z":1,"y":{"b":1,"a":2},"x":3})");
  EXPECT_EQ(json.erase("z"), 1U);
  EXPECT_EQ(json.erase("z"), 0U);
  EXPECT_FALSE(json.emplace("x", 4));
  EXPECT_TRUE(json.emplace("w", 5));
  json.update({{"x", 6}});
  json.SortMembers();
  EXPECT_EQ(json.dump(), R"({"w":5,"x":6,"y":{"a":2,"b":1}})");
}

TEST(Json, ManyMembersAreFoundAfterParsingAndAfterChanges) {
  std::string text = "{";
  for (int i = 0; i < 5000; ++i) text += "\"m" + std::to_string(i * 7919 % 5000) + "\":1,";
  text += "\"m17\":2}";
  Json json = Json::Parse(text);
  ASSERT_EQ(json.size(), 5000U);
  for (int i = 0; i < 5000; ++i) {
    const auto found = json.find("m" + std::to_string(i));
    ASSERT_NE(found, json.end());
    ASSERT_EQ(*found, Json(i == 17 ? 2 : 1));
    ASSERT_EQ(found.key(), "m" + std::to_string(i));
  }
  EXPECT_FALSE(json.contains("m5000"));
  json["new"] = 3;
  json.erase("m3");
  EXPECT_EQ(json["new"], 3);
  EXPECT_FALSE(json.contains("m3"));
  EXPECT_EQ(json["m4999"], 1);
  const Json copy = json;
  EXPECT_EQ(copy, json);
}

TEST(Json, ElementsAreWalkedAndChanged) {
  Json json = Json::Parse("[3,1,2]");
  json.push_back("x");
  json.insert(json.begin(), nullptr);
  json.erase(1);
  EXPECT_EQ(json.dump(), R"([null,1,2,"x"])");
  int sum = 0;
  for (const Json& element : json) sum += element.is_number() ? element.get<int>() : 10;
  EXPECT_EQ(sum, 23);
  EXPECT_EQ(json.front(), Json());
  EXPECT_EQ(json.back(), Json("x"));
  EXPECT_EQ(json.end() - json.begin(), 4);
  json.clear();
  EXPECT_TRUE(json.is_array() && json.empty());
  EXPECT_TRUE(Json().empty() && Json().begin() == Json().end());
}

TEST(Json, PointersNamePlaces) {
  Json json = Json::Parse(R"({"a":[{"b/c":1,"~":2}]})");
  EXPECT_EQ(*json.Find("/a/0/b~1c"), Json(1));
  EXPECT_EQ(*json.Find("/a/0/~0"), Json(2));
  EXPECT_EQ(json.Find(""), &json);
  EXPECT_EQ(json.Find("/a/1"), nullptr);
  EXPECT_EQ(json.Find("/a/00"), nullptr);
  EXPECT_EQ(json.Find("/a/x"), nullptr);
  EXPECT_EQ(json.Find("/x/y"), nullptr);
  EXPECT_THROW(json.Find("a"), Json::Error);
  EXPECT_THROW(json.Find("/~2"), Json::Error);
  json.Place("/a/0/new") = 3;
  EXPECT_EQ(json["a"][0]["new"], 3);
}

TEST(Json, FloatsReadBackAndLookLikeFloats) {
  for (const auto& [number, text] : {std::pair(1.0, "1.0"),
                                     {-0.0, "-0.0"},
                                     {0.1, "0.1"},
                                     {1e14, "100000000000000.0"},
                                     {1e15, "1e+15"},
                                     {123456.75, "123456.75"},
                                     {0.0001, "0.0001"},
                                     {0.00001, "1e-05"},
                                     {1.5e-7, "1.5e-07"},
                                     {1e100, "1e+100"},
                                     {5e-324, "5e-324"}}) {
    EXPECT_EQ(Json(number).dump(), text);
  }
  EXPECT_EQ(Json(NAN).dump(), "null");
  EXPECT_EQ(Json(INFINITY).dump(), "null");
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    const Json read = Json::Parse(Json(number).dump());
    ASSERT_TRUE(read.is_number_float());
    ASSERT_EQ(read.get<double>(), number);
  }
}

TEST(Json, StringsAreEscapedAndAlwaysUtf8) {
  EXPECT_EQ(Json("\"\\\b\f\n\r\t\x01/").dump(), R"("\"\\\b\f\n\r\t\u0001/")");
  EXPECT_EQ(Json("\xFF"
                 "a\xC3")
                .dump(),
            "\"\uFFFDa\uFFFD\"");
  EXPECT_EQ(Json("é\U0001F600\x7F").DumpAscii(), R"("\u00e9\ud83d\ude00\u007f")");
  EXPECT_EQ(Json::Parse(R"("\u00e9\ud83d\ude00")").text(), "é\U0001F600");
}

TEST(Json, WhatIsNoJsonIsDiscarded) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1,}", "01", "nul", "\"\xFF\"", "1 2", "1e999",
                           "'a'", "[1", "\"\n\"", "\"\\ud800\""}) {
    std::string error;
    EXPECT_TRUE(Json::Parse(text, &error).is_discarded()) << text;
    EXPECT_NE(error, "") << text;
    EXPECT_FALSE(IsJson(text)) << text;
  }
  EXPECT_TRUE(IsJson(" [1, {\"a\": null}] "));
}

TEST(Json, AMillionBracketsAreReadAndFreed) {
  const std::string open(1'000'000, '[');
  EXPECT_TRUE(Json::Parse(open + std::string(1'000'000, ']')).is_array());
  EXPECT_TRUE(Json::Parse(open).is_discarded());
}

// A megabyte of short names takes about as long as one of long ones.
TEST(Json, ManyShortNamesAreReadInATimeThatGrowsAsTheTextDoes) {
  std::string text = "{";
  for (int i = 0; i < 150'000; ++i) text += '"' + std::to_string(i) + "\":0,";
  text.back() = '}';
  EXPECT_EQ(Json::Parse(text).size(), 150'000U);
}

}  // namespace
}  // namespace foretoken
