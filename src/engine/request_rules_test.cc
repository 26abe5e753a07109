#include "engine/request_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

constexpr RequestLimits kLimits{.vocabulary = 16, .max_context = 8, .has_tokenizer = true};

Request Good() {
  Request request;
  request.prompt = {1, 2, 15};
  return request;
}

TEST(RequestRules, ARequestThatFitsMayRun) {
  EXPECT_TRUE(ValidateRequest(Good(), kLimits).ok());
  Request longest = Good();
  longest.prompt.assign(7, 3);
  longest.stop.stop_strings.assign(16, "x");
  EXPECT_TRUE(ValidateRequest(longest, kLimits).ok());
}

TEST(RequestRules, WhatIsWrongIsNamedWithItsField) {
  struct Case {
    std::function<void(Request*)> spoil;
    const char* field;
    const char* sentence;
  };
  const Case cases[] = {
      {[](Request* r) { r->prompt.clear(); }, "prompt", "the prompt is empty"},
      {[](Request* r) { r->prompt[1] = 16; }, "prompt", "prompt token 1 is 16, outside"},
      {[](Request* r) { r->prompt[2] = -1; }, "prompt", "prompt token 2 is -1, outside"},
      {[](Request* r) { r->prompt.assign(8, 1); }, "prompt", "8 tokens, but the context holds 8"},
      {[](Request* r) { r->stop.max_tokens = 0; }, "max_tokens", "at least 1, not 0"},
      {[](Request* r) { r->stop.stop_strings.assign(17, "x"); }, "stop_strings", "at most 16"},
      {[](Request* r) {
         r->stop.stop_strings = {"a", ""};
       },
       "stop_strings", "is empty"},
  };
  for (const Case& wrong : cases) {
    Request request = Good();
    wrong.spoil(&request);
    const Status status = ValidateRequest(request, kLimits);
    ASSERT_FALSE(status.ok()) << wrong.sentence;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidInput);
    EXPECT_EQ(status.error().field, wrong.field);
    EXPECT_THAT(status.error().message, HasSubstr(wrong.sentence));
  }
}

TEST(RequestRules, StopStringsNeedATokenizer) {
  Request request = Good();
  request.stop.stop_strings = {"end"};
  const Status status = ValidateRequest(request, {.vocabulary = 16, .max_context = 8});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().field, "stop_strings");
}

}  // namespace
}  // namespace foretoken
