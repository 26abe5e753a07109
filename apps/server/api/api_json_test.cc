#include "server/api/api_json.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

TEST(ErrorJson, HasTheShapeOfOpenAi) {
  EXPECT_EQ(ErrorJson({.message = "a \xff", .param = "n"}),
            "{\"error\":{\"message\":\"a \xef\xbf\xbd\",\"type\":\"invalid_request_error\","
            "\"param\":\"n\",\"code\":null}}");
}

}  // namespace
}  // namespace foretoken::server
