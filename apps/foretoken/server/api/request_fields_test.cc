#include "apps/foretoken/server/api/request_fields.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

TEST(ModelNamed, IsTheBodysOwnMember) {
  EXPECT_EQ(ModelNamed(R"({"model":"a","prompt":"Hi"})"), "a");
  EXPECT_EQ(ModelNamed(R"({"messages":[{"model":"b","content":[]}],"x":{"model":"c"},)"
                       R"("model":"org/a:Q8_0"})"),
            "org/a:Q8_0");
}

TEST(ModelNamed, IsEmptyWhereThereIsNone) {
  for (const char* body : {"", "{", "[]", "[\"model\"]", "\"model\"", "{}", R"({"model":7})",
                           R"({"model":null})", R"({"model":["a"]})", R"({"model":{"model":"a"}})",
                           R"({"x":{"model":"a"}})", R"({"model":"a")"}) {
    EXPECT_EQ(ModelNamed(body), "") << body;
  }
  EXPECT_EQ(ModelNamed(std::string(100'000, '[')), "");
}

}  // namespace
}  // namespace foretoken::server
