#include "core/sampling/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace foretoken {
namespace {

TEST(Softmax, ExpIsAccurateAndExactAtZero) {
  EXPECT_EQ(ExpNonPositive(0.0F), 1.0F);
  for (float x = 0; x > -87.0F; x -= 0.0137F) {
    const double exact = std::exp(double{x});
    ASSERT_NEAR(ExpNonPositive(x) / exact, 1.0, 3e-7) << x;
  }
  EXPECT_GT(ExpNonPositive(-1e30F), 0.0F);
  EXPECT_LT(ExpNonPositive(-1e30F), 1e-37F);
}

TEST(Softmax, SumsAndMaximaOfAnyLengthIgnoreNaN) {
  constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> logits;
  for (int count = 0; count < 70; ++count) {
    float max = -std::numeric_limits<float>::infinity();
    for (const float logit : logits) max = logit > max ? logit : max;
    ASSERT_EQ(MaxLogit(logits.data(), count), max);
    double sum = 0;
    for (const float logit : logits) {
      if (!std::isnan(logit)) sum += std::exp((double{logit} - max) / 0.5);
    }
    ASSERT_NEAR(SumWeights(logits.data(), count, max, 0.5F), sum, 1e-5);
    logits.push_back(count % 9 == 4 ? kNotANumber : std::sin(float(count)) * 5);
  }
}

TEST(Softmax, LogIsAccurateFromTheLeastNormalFloatOn) {
  EXPECT_EQ(Log(1.0F), 0.0F);
  EXPECT_EQ(Log(0.0F), -std::numeric_limits<float>::infinity());
  for (float x = std::numeric_limits<float>::min(); x < 1e30F; x *= 1.00137F) {
    const double exact = std::log(double{x});
    ASSERT_NEAR(Log(x), exact, 2e-7 * std::max(1.0, std::abs(exact))) << x;
  }
}

TEST(Softmax, RemovedTokensHaveNoWeight) {
  const float kInfinite = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {1, -kInfinite, std::nanf(""), 0, -1e30F};
  std::vector<float> weights(logits.size());
  WriteWeights(logits.data(), 5, 1, 0.5F, weights.data());
  EXPECT_EQ(weights[0], 1);
  EXPECT_EQ(weights[1], 0);
  EXPECT_EQ(weights[2], 0);
  EXPECT_NEAR(weights[3], std::exp(-2.0), 1e-7);
  EXPECT_GT(weights[4], 0);
  weights.assign(100, 0.125F);
  EXPECT_EQ(Sum(weights), 12.5);
}

}  // namespace
}  // namespace foretoken
