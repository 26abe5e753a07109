#include "apps/foretoken/options/model_sampling.h"

#include <gtest/gtest.h>

#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

class ModelSampling : public testing::Test {
 protected:
  Status Add(const std::string& text, const std::set<std::string>& given = {}) {
    folder_.Write("generation_config.json", text);
    const ModelSamplingOptions options{.given = given};
    return options.AddTo(folder_.path(), &sampling_);
  }

  const TemporaryFolder folder_;
  SamplingParams sampling_;
};

TEST_F(ModelSampling, WhatItsMakersRecommend) {
  ASSERT_TRUE(Add(R"({"do_sample":true,"temperature":0.7,"top_k":20,"top_p":0.8,"min_p":0.05,)"
                  R"("repetition_penalty":1.05,"eos_token_id":[1,2]})")
                  .ok());
  EXPECT_FLOAT_EQ(sampling_.temperature, 0.7F);
  EXPECT_EQ(sampling_.top_k, 20);
  EXPECT_FLOAT_EQ(sampling_.top_p, 0.8F);
  EXPECT_FLOAT_EQ(sampling_.min_p, 0.05F);
  EXPECT_FLOAT_EQ(sampling_.repetition_penalty, 1.05F);
}

TEST_F(ModelSampling, WhatTheUserSaysStays) {
  sampling_.temperature = 0.3F;
  ASSERT_TRUE(Add(R"({"temperature":0.7,"top_k":-1,"top_p":null})", {"--temp"}).ok());
  EXPECT_FLOAT_EQ(sampling_.temperature, 0.3F);
  EXPECT_EQ(sampling_.top_k, 0);
  EXPECT_FLOAT_EQ(sampling_.top_p, SamplingParams().top_p);
}

TEST_F(ModelSampling, NothingWithoutSampling) {
  ASSERT_TRUE(Add(R"({"do_sample":false,"temperature":0.7})").ok());
  EXPECT_FLOAT_EQ(sampling_.temperature, SamplingParams().temperature);
  EXPECT_TRUE(ModelSamplingOptions().AddTo(folder_.path() / "none", &sampling_).ok());
}

TEST_F(ModelSampling, NothingWhereTheUserWantsNone) {
  folder_.Write("generation_config.json", R"({"temperature":0.7})");
  const ModelSamplingOptions options{.generation_config = "none"};
  ASSERT_TRUE(options.AddTo(folder_.path(), &sampling_).ok());
  EXPECT_FLOAT_EQ(sampling_.temperature, SamplingParams().temperature);
}

TEST_F(ModelSampling, WhatIsWrongIsSaid) {
  const Status status = Add(R"({"temperature":"hot"})");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("generation_config.json"), std::string::npos);
  EXPECT_NE(status.error().message.find("temperature"), std::string::npos);
  EXPECT_FALSE(Add("[]").ok());
}

}  // namespace
}  // namespace foretoken
