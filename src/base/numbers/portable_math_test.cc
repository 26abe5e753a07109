#include "base/numbers/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace foretoken {
namespace {

TEST(PortableMath, SinesAndCosinesAreThoseOfTheLibrary) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> small(-4, 4);
  std::uniform_real_distribution<double> large(0, 1 << 20);
  for (int i = 0; i < 200'000; ++i) {
    const double angle = i % 2 == 0 ? small(random) : large(random);
    const SinCos found = PortableSinCos(angle);
    ASSERT_NEAR(found.sin, std::sin(angle), 3e-16) << angle;
    ASSERT_NEAR(found.cos, std::cos(angle), 3e-16) << angle;
  }
  EXPECT_EQ(PortableSinCos(0).sin, 0);
  EXPECT_EQ(PortableSinCos(0).cos, 1);
}

TEST(PortableMath, LogarithmsAndExponentialsAreThoseOfTheLibrary) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponents(-300, 300);
  for (int i = 0; i < 100'000; ++i) {
    const double x = exponents(random);
    const double power = std::exp(x);
    ASSERT_NEAR(PortableExp(x) / power, 1, 1e-15) << x;
    ASSERT_NEAR(PortableLog(power), x, 1e-15 * (1 + std::abs(x))) << x;
    ASSERT_NEAR(PortableExpNonPositive(-std::abs(x)) / std::exp(-std::abs(x)), 1, 1e-15) << x;
  }
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableLog(0), -std::numeric_limits<double>::infinity());
  EXPECT_NEAR(PortableLog(0x1p-1070), -741.667, 1e-3);
  EXPECT_EQ(PortableExp(0), 1);
  EXPECT_NEAR(PortableLog(1 + 0x1p-40), 0x1p-40, 0x1p-80);
  EXPECT_EQ(PortableExpNonPositive(0), 1);
  EXPECT_EQ(PortableExpNonPositive(-INFINITY), PortableExpNonPositive(-708));
  EXPECT_LT(PortableExpNonPositive(-1e6), 1e-307);
  EXPECT_TRUE(std::isnan(PortableExpNonPositive(NAN)));
}

}  // namespace
}  // namespace foretoken
