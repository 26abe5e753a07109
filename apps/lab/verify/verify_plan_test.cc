#include "apps/lab/verify/verify_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace foretoken {
namespace {

using ::testing::ElementsAre;

TEST(SamplerSets, Parse) {
  EXPECT_FALSE(ParseSamplerSet("none")->params.has_filters());
  const auto set = ParseSamplerSet("top-k=40+min-p=0.05+repeat-penalty=1.1");
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->params.top_k, 40);
  EXPECT_FLOAT_EQ(set->params.min_p, 0.05F);
  EXPECT_TRUE(set->params.has_penalties());
  for (const char* text : {"top-k", "top-k=", "top-q=1", "top-k=x", "+top-k=1"}) {
    EXPECT_FALSE(ParseSamplerSet(text).ok()) << text;
  }
}

TEST(VerifyPlan, NumbersAndDifferences) {
  EXPECT_THAT(ParseTemperatures("0, 0.5").value(), ElementsAre(0.0F, 0.5F));
  EXPECT_FALSE(ParseTemperatures("-1").ok());
  EXPECT_FALSE(ParseTemperatures("nan").ok());
  EXPECT_FALSE(ParseBatches("1,0").ok());
  EXPECT_EQ(FirstDifference({1, 2}, {1, 2}), -1);
  EXPECT_EQ(FirstDifference({1, 2}, {1, 3}), 1);
  EXPECT_EQ(FirstDifference({1, 2}, {1, 2, 3}), 2);
  EXPECT_EQ(FirstDifference({}, {1}), 0);
}

TEST(VerifyPlan, FindsChildProcesses) {
  EXPECT_TRUE(ChildProcesses().empty());
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_THAT(ChildProcesses(), ElementsAre(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(ChildProcesses().empty());
}

}  // namespace
}  // namespace foretoken
