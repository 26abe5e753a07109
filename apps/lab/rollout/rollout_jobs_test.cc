#include "apps/lab/rollout/rollout_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string JobError(const std::string& line) {
  const auto order = ParseRolloutJob(line, {}, "line 3");
  return order.ok() ? "" : order.error().message;
}

TEST(RolloutJobs, ParsesALine) {
  RolloutOptions options;
  options.samples = 4;
  options.generation.sampling.seed = 5;
  const auto plain = ParseRolloutJob(R"({"prompts": "p.jsonl", "out": "o.jsonl"})", options, "");
  ASSERT_TRUE(plain.ok());
  EXPECT_THAT(plain->prompts.files, ElementsAre("p.jsonl"));
  EXPECT_EQ(plain->out, "o.jsonl");
  EXPECT_EQ(plain->samples, 4);
  EXPECT_EQ(plain->seed, 5U);
  EXPECT_EQ(plain->target, "");
  const auto full = ParseRolloutJob(
      R"({"prompts": "p", "out": "o", "samples": 2, "seed": 18446744073709551615, "target": "m"})",
      options, "");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->samples, 2);
  EXPECT_EQ(full->seed, ~std::uint64_t{0});
  EXPECT_EQ(full->target, "m");
}

TEST(RolloutJobs, RefusesOthersByTheirLine) {
  EXPECT_EQ(JobError("[]"), "line 3 is no JSON object");
  EXPECT_THAT(JobError(R"({"out": "o"})"), HasSubstr("prompts"));
  EXPECT_THAT(JobError(R"({"prompts": "p"})"), HasSubstr("out"));
  EXPECT_THAT(JobError(R"({"prompts": "p", "out": "o", "samples": 0})"), HasSubstr("samples"));
  EXPECT_THAT(JobError(R"({"prompts": "p", "out": "o", "seed": -1})"), HasSubstr("seed"));
  EXPECT_THAT(JobError(R"({"prompts": "p", "out": "o", "sample": 2})"), HasSubstr("sample"));
}

}  // namespace
}  // namespace foretoken
