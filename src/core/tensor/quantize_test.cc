#include "core/tensor/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/numbers/integers.h"
#include "core/tensor/half.h"
#include "core/tensor/weight_block.h"

namespace foretoken {
namespace {

constexpr int kBlocks = 200;

std::vector<WeightFormat> QuantizedFormats() {
  std::vector<WeightFormat> formats;
  for (std::size_t i = 0; i < kWeightFormats; ++i) {
    const auto format = static_cast<WeightFormat>(i);
    if (IsQuantized(format)) formats.push_back(format);
  }
  return formats;
}

/// What becomes of values that are stored and loaded again.
std::vector<float> Stored(WeightFormat format, std::span<const float> values) {
  const std::int64_t count = values.size();
  std::vector<std::byte> bytes(FormatBytes(format, count));
  StoreElements(format, values.data(), count, bytes.data());
  std::vector<float> again(values.size());
  Dequantize(format, bytes.data(), count / InfoOf(format).block_elements, again.data());
  return again;
}

/// Root of the mean square of the error, relative to that of the values.
double RelativeError(std::span<const float> values, std::span<const float> stored) {
  double error = 0;
  double all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double{values[i]} - double{stored[i]}, 2);
    all += std::pow(double{values[i]}, 2);
  }
  return std::sqrt(error / all);
}

/// Blocks of a K format without a search: groups scaled by their extremes, the nearest codes.
std::vector<float> StoredPlainly(WeightFormat format, std::span<const float> values) {
  const WeightCodes& meaning = CodesOf(format);
  const int most = (1 << meaning.bits) - 1;
  const int low = -meaning.offset;
  const float last_scale = format == WeightFormat::kQ6_K   ? 127
                           : format == WeightFormat::kQ3_K ? 31
                           : format == WeightFormat::kQ2_K ? 15
                                                           : 63;
  std::vector<float> stored(values.size());
  for (std::size_t begin = 0; begin < values.size(); begin += kMostBlockElements) {
    const int groups = kMostBlockElements / meaning.group;
    std::vector<float> scales(groups);
    std::vector<float> lesses(scales.size());
    for (int g = 0; g < groups; ++g) {
      const auto group = values.subspan(begin + Size(g * meaning.group), meaning.group);
      const auto [smallest, largest] = std::ranges::minmax(group);
      const float less = -std::min(smallest, 0.0F);
      const float extreme = std::max(std::abs(smallest), std::abs(largest));
      lesses[g] = meaning.has_less ? less : 0;
      scales[g] = meaning.has_less ? (largest + less) / static_cast<float>(most)
                                   : extreme / static_cast<float>(most + low);
    }
    const float scale = *std::ranges::max_element(scales) / last_scale;
    const float less = *std::ranges::max_element(lesses) / last_scale;
    for (int i = 0; i < kMostBlockElements; ++i) {
      const int g = i / meaning.group;
      const float s = std::round(scales[g] / scale) * scale;
      const float l = less > 0 ? std::round(lesses[g] / less) * less : 0;
      const float x = values[begin + i];
      const float code = std::clamp(s > 0 ? std::round((x + l) / s) : 0, static_cast<float>(low),
                                    static_cast<float>(low + most));
      stored[begin + i] = s * code - l;
    }
  }
  return stored;
}

TEST(Half, FloatToHalfRoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<std::uint16_t>(bits));
    if (!std::isnan(value)) {
      ASSERT_EQ(FloatToHalf(value), bits);
    }
  }
  EXPECT_EQ(FloatToHalf(1.0F + 0x1p-11F), 0x3C00);      // Tie to even: down.
  EXPECT_EQ(FloatToHalf(1.0F + 3 * 0x1p-11F), 0x3C02);  // Tie to even: up.
  EXPECT_EQ(FloatToHalf(1.0F + 0x1p-11F + 0x1p-20F), 0x3C01);
  EXPECT_EQ(FloatToHalf(-0x1p-25F), 0x8000);  // Tie to even: zero.
  EXPECT_EQ(FloatToHalf(0x1.8p-24F), 0x0002);
  EXPECT_EQ(FloatToHalf(0x1p-14F - 0x1p-26F), 0x0400);  // Becomes normal.
  EXPECT_EQ(FloatToHalf(65519.0F), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0F), 0x7C00);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Quantize, BlocksArePackedAsTheyAreUnpacked) {
  std::mt19937 random(3);
  for (const WeightFormat format : QuantizedFormats()) {
    const std::size_t bytes = InfoOf(format).block_bytes;
    for (int round = 0; round < kBlocks; ++round) {
      std::vector<std::byte> data(bytes);
      for (std::byte& byte : data) byte = static_cast<std::byte>(random());
      WeightBlock block;
      UnpackBlock(format, data.data(), &block);
      std::vector<std::byte> packed(bytes, std::byte{0xFF});
      PackBlock(format, block, packed.data());
      ASSERT_EQ(packed, data) << FormatName(format);
    }
  }
}

TEST(Quantize, WhatCanBeStored) {
  EXPECT_TRUE(CanStore(WeightFormat::kF16));
  EXPECT_TRUE(CanStore(WeightFormat::kQ2_K));
  EXPECT_TRUE(CanStore(WeightFormat::kIQ4_NL));
  EXPECT_TRUE(CanStore(WeightFormat::kMXFP4));
  EXPECT_FALSE(CanStore(WeightFormat::kIQ4_XS));
}

// The search pays on weights like those of models, and on some with outliers.
TEST(Quantize, SearchedScalesAreBetterThanExtremes) {
  std::mt19937 random(5);
  std::vector<float> normal(kBlocks * kMostBlockElements);
  std::vector<float> heavy(normal.size());
  std::normal_distribution<float> bell(0, 0.02F);
  std::student_t_distribution<float> tails(3);
  for (float& value : normal) value = bell(random);
  for (float& value : heavy) value = 0.02F * tails(random);
  struct Case {
    WeightFormat format;
    double normal;  // What is measured, and a little more.
    double heavy;
  };
  for (const Case& at :
       {Case{WeightFormat::kQ2_K, 0.275, 0.31}, Case{WeightFormat::kQ3_K, 0.15, 0.19},
        Case{WeightFormat::kQ4_K, 0.073, 0.094}, Case{WeightFormat::kQ5_K, 0.037, 0.048},
        Case{WeightFormat::kQ6_K, 0.018, 0.026}}) {
    for (const auto& [values, most] :
         {std::pair(&normal, at.normal), std::pair(&heavy, at.heavy)}) {
      const double error = RelativeError(*values, Stored(at.format, *values));
      const double plain = RelativeError(*values, StoredPlainly(at.format, *values));
      const char* name = values == &normal ? "normal" : "heavy";
      EXPECT_LT(error, 0.97 * plain) << FormatName(at.format) << ' ' << name;
      EXPECT_LT(error, most) << FormatName(at.format) << ' ' << name;
    }
  }
}

/// The square error of a block whose scale is given, every code the nearest one.
double ErrorWithScale(WeightFormat format, std::span<const float> block, double scale) {
  double error = 0;
  for (const float x : block) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::int8_t value : *CodesOf(format).values) {
      least = std::min(least, std::pow(x - scale * value, 2));
    }
    error += least;
  }
  return error;
}

double SquareError(std::span<const float> values, std::span<const float> stored) {
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double{values[i]} - double{stored[i]}, 2);
  }
  return error;
}

// Blocks of all magnitudes, with and without outliers; scales are tried one by one.
TEST(Quantize, TablesGetTheScaleOfLeastError) {
  std::mt19937 random(9);
  std::normal_distribution<float> bell;
  std::student_t_distribution<float> tails(2);
  std::uniform_int_distribution<int> powers(-12, 12);
  double searched = 0;
  double possible = 0;
  for (int round = 0; round < 300; ++round) {
    const float magnitude = std::ldexp(1.0F, powers(random));
    std::vector<float> block(32);
    for (float& value : block) value = magnitude * (round % 2 == 0 ? bell(random) : tails(random));
    double least = std::numeric_limits<double>::infinity();
    for (int power = -128; power < 127; ++power) {
      const double scale = std::ldexp(1.0, power);
      least = std::min(least, ErrorWithScale(WeightFormat::kMXFP4, block, scale));
    }
    EXPECT_NEAR(SquareError(block, Stored(WeightFormat::kMXFP4, block)), least, 1e-9 * least);

    const float extreme = std::ranges::max(block, {}, [](float x) { return std::abs(x); });
    const double square = magnitude * magnitude;
    searched += SquareError(block, Stored(WeightFormat::kIQ4_NL, block)) / square;
    least = std::numeric_limits<double>::infinity();
    for (double end = -160; end <= 160; end += 0.5) {
      if (std::abs(end) < 60) continue;
      const double scale = HalfToFloat(FloatToHalf(static_cast<float>(extreme / end)));
      least = std::min(least, ErrorWithScale(WeightFormat::kIQ4_NL, block, scale));
    }
    possible += least / square;
  }
  EXPECT_LT(searched, 1.04 * possible);
}

// Groups of one magnitude, of none, and beside an outlier; the ends of what halves can say.
TEST(Quantize, BlocksOfAnyKindStayNear) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const WeightFormat format : QuantizedFormats()) {
    if (!CanStore(format)) continue;
    const std::size_t count = InfoOf(format).block_elements;
    std::vector<float> values(count, 0.0F);
    for (const float stored : Stored(format, values)) EXPECT_EQ(stored, 0) << FormatName(format);
    for (const float constant : {1.0F, -1.0F, 100.0F, -3e-4F}) {
      std::ranges::fill(values, constant);
      // Neighbours in MXFP4 are 1, 1.5 and 2 times a power of two.
      const double most = format == WeightFormat::kMXFP4 ? 0.2 : 0.05;
      EXPECT_LT(RelativeError(values, Stored(format, values)), most) << FormatName(format);
    }
    for (const float outlier : {1.0F, -1.0F}) {
      std::ranges::fill(values, 0.0F);
      values[17] = outlier;
      const std::vector<float> stored = Stored(format, values);
      EXPECT_NEAR(stored[17], outlier, 0.05) << FormatName(format);
      EXPECT_NEAR(stored[18], 0, 0.05) << FormatName(format);
    }
    for (const float magnitude : {1e-45F, 1e-20F, 1e-6F, 1e-4F, 1.0F, 1e4F}) {
      for (float& value : values) value = magnitude * uniform(random);
      for (const float stored : Stored(format, values)) {
        EXPECT_LE(std::abs(stored), 1.5F * magnitude + 1e-7F) << FormatName(format);
      }
    }
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      values[3] = bad;
      for (const float stored : Stored(format, values)) {
        EXPECT_TRUE(format == WeightFormat::kMXFP4 ? std::isinf(stored) : std::isnan(stored));
      }
      values[3] = 0;
    }
  }
}

}  // namespace
}  // namespace foretoken
