#include "apps/foretoken/server/api/api_json.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

TEST(ErrorJson, HasTheShapeOfOpenAi) {
  EXPECT_EQ(ErrorJson({.message = "a \xff", .param = "n"}),
            "{\"error\":{\"message\":\"a \xef\xbf\xbd\",\"type\":\"invalid_request_error\","
            "\"param\":\"n\",\"code\":null}}");
}

TEST(JsonText, ElementsAndMembersAreAppended) {
  std::string array = "[]";
  AppendElements("[]", &array);
  EXPECT_EQ(array, "[]");
  AppendElements("[1,2]", &array);
  AppendElements("[]", &array);
  AppendElements(R"([{"a":3}])", &array);
  EXPECT_EQ(array, R"([1,2,{"a":3}])");
  std::string object = "{}";
  AppendMember("x", array, &object);
  AppendMember("y", "null", &object);
  EXPECT_EQ(object, R"({"x":[1,2,{"a":3}],"y":null})");
}

}  // namespace
}  // namespace foretoken::server
