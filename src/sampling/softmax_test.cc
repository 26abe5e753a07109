#include "sampling/softmax.h"

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
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
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
    logits.push_back(count % 9 == 4 ? kNaN : std::sin(float(count)) * 5);
  }
}

}  // namespace
}  // namespace foretoken
