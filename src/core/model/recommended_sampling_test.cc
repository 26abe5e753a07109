#include "foretoken/recommended_sampling.h"

#include <gmock/gmock.h>

#include "base/files/temporary_testing.h"
#include "core/weights/gguf/gguf_testing.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

class RecommendedSamplingOfFiles : public testing::Test {
 protected:
  Result<RecommendedSampling> ReadFile() {
    const auto path = folder_.path() / "m.gguf";
    gguf_.Write(path.string());
    return ReadRecommendedSampling(path);
  }

  const TemporaryFolder folder_;
  GgufBuilder gguf_;
};

TEST_F(RecommendedSamplingOfFiles, KeysOfAGgufFile) {
  gguf_.Text("general.architecture", "llama");
  gguf_.Key("general.sampling.temp", GgufType::kFloat32, 0.6F);
  gguf_.Key("general.sampling.top_k", GgufType::kInt32, 64);
  gguf_.Key("general.sampling.top_p", GgufType::kFloat32, 0.95F);
  gguf_.Key("general.sampling.penalty_repeat", GgufType::kFloat64, 1.1);
  const auto read = ReadFile();
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_FLOAT_EQ(*read->temperature, 0.6F);
  EXPECT_EQ(read->top_k, 64);
  EXPECT_FLOAT_EQ(*read->top_p, 0.95F);
  EXPECT_FALSE(read->min_p.has_value());
  EXPECT_FLOAT_EQ(*read->repetition_penalty, 1.1F);
}

TEST_F(RecommendedSamplingOfFiles, OfNumbersAnyKindWillDo) {
  gguf_.Key("general.sampling.temp", GgufType::kUint32, std::uint32_t{1});
  gguf_.Key("general.sampling.top_k", GgufType::kFloat32, 20.0F);
  const auto read = ReadFile();
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_FLOAT_EQ(*read->temperature, 1.0F);
  EXPECT_EQ(read->top_k, 20);
}

TEST_F(RecommendedSamplingOfFiles, NothingIsNothing) {
  const auto read = ReadFile();
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->temperature.has_value() || read->top_k.has_value());
  EXPECT_TRUE(ReadRecommendedSampling(folder_.path()).ok());
}

TEST_F(RecommendedSamplingOfFiles, WhatIsOutOfRangeIsNamed) {
  gguf_.Key("general.sampling.top_p", GgufType::kFloat32, 1.5F);
  const auto read = ReadFile();
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("m.gguf"));
  EXPECT_THAT(read.error().message, HasSubstr("general.sampling.top_p"));
}

TEST_F(RecommendedSamplingOfFiles, ATextIsNoNumber) {
  gguf_.Text("general.sampling.temp", "hot");
  EXPECT_THAT(ReadFile().error().message, HasSubstr("general.sampling.temp"));
}

}  // namespace
}  // namespace foretoken
