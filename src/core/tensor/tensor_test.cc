#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/tensor/buffer.h"
#include "core/tensor/half.h"
#include "core/tensor/not_finite.h"
#include "core/tensor/quantize.h"
#include "core/tensor/tensor_testing.h"
#include "core/tensor/tensor_view.h"
#include "core/tensor/weight_format.h"

namespace foretoken {
namespace {

TEST(WeightFormat, NamesAndSizes) {
  for (const std::string_view name : {"F32", "F16", "BF16", "Q4_K", "IQ4_XS", "MXFP4"}) {
    const auto format = ParseWeightFormat(name);
    ASSERT_TRUE(format.has_value()) << name;
    EXPECT_EQ(FormatName(*format), name);
  }
  EXPECT_FALSE(ParseWeightFormat("Q4_2").has_value());
  EXPECT_EQ(FormatBytes(WeightFormat::kF32, 3), 12U);
  EXPECT_EQ(FormatBytes(WeightFormat::kBF16, 3), 6U);
  EXPECT_EQ(FormatBytes(WeightFormat::kQ4_0, 64), 36U);
  EXPECT_EQ(FormatBytes(WeightFormat::kQ6_K, 512), 420U);
}

TEST(Half, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(FloatToBFloat16(1.0F), 0x3F80);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3F808000U)), 0x3F80);  // Tie to even: down.
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3F818000U)), 0x3F82);  // Tie to even: up.
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_TRUE(
      std::isnan(BFloat16ToFloat(FloatToBFloat16(std::numeric_limits<float>::quiet_NaN()))));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = BFloat16ToFloat(static_cast<BFloat16>(bits));
    if (!std::isnan(value)) {
      ASSERT_EQ(FloatToBFloat16(value), bits);
    }
  }
}

TEST(Half, HalfToFloatIsExact) {
  EXPECT_EQ(HalfToFloat(0x3C00), 1.0F);
  EXPECT_EQ(HalfToFloat(0xC000), -2.0F);
  EXPECT_EQ(HalfToFloat(0x7BFF), 65504.0F);
  EXPECT_EQ(HalfToFloat(0x0001), 0x1p-24F);
  EXPECT_EQ(HalfToFloat(0x03FF), 1023 * 0x1p-24F);
  EXPECT_EQ(HalfToFloat(0x0400), 0x1p-14F);
  EXPECT_TRUE(std::signbit(HalfToFloat(0x8000)));
  EXPECT_EQ(HalfToFloat(0x7C00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7E00)));
}

// Each format gets a tensor with one element, or block, that is not finite.
TEST(NotFinite, IsFoundInEveryFormat) {
  constexpr std::int64_t kElements = 5120;
  for (std::size_t number = 0; number < kWeightFormats; ++number) {
    const auto format = static_cast<WeightFormat>(number);
    if (!CanStore(format)) continue;
    for (const float wrong :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      for (const std::int64_t at : {std::int64_t{0}, std::int64_t{4095}, kElements - 1}) {
        std::vector<float> values(kElements);
        for (std::int64_t i = 0; i < kElements; ++i) {
          values[i] = static_cast<float>(i % 100) - 50;
        }
        std::vector<std::byte> bytes(FormatBytes(format, kElements) + 1);
        const TensorView view{format, {kElements}, bytes.data() + 1};
        StoreElements(format, values.data(), kElements, bytes.data() + 1);
        EXPECT_EQ(FindNotFinite(view), -1) << FormatName(format);
        values[at] = wrong;
        StoreElements(format, values.data(), kElements, bytes.data() + 1);
        const std::int64_t block = InfoOf(format).block_elements;
        EXPECT_EQ(FindNotFinite(view), at / block * block) << FormatName(format) << " " << wrong;
      }
    }
  }
}

TEST(TensorView, LoadsEveryDTypeUnaligned) {
  std::byte bytes[17] = {};
  auto put = [&](std::size_t at, std::uint32_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(1, std::bit_cast<std::uint32_t>(1.5F), 4);
  put(5, std::bit_cast<std::uint32_t>(-3.0F), 4);
  TensorView view{WeightFormat::kF32, {2}, bytes + 1};
  EXPECT_EQ(view.elements(), 2);
  EXPECT_EQ(view.bytes(), 8U);
  EXPECT_EQ(LoadElement(view, 0), 1.5F);
  EXPECT_EQ(LoadElement(view, 1), -3.0F);
  put(1, 0x3C00C000, 4);
  view.format = WeightFormat::kF16;
  float loaded[2];
  LoadElements(view, 0, 2, loaded);
  EXPECT_EQ(loaded[0], -2.0F);
  EXPECT_EQ(loaded[1], 1.0F);
  put(1, 0x3F80C000, 4);
  view.format = WeightFormat::kBF16;
  EXPECT_EQ(LoadElement(view, 0), -2.0F);
  EXPECT_EQ(LoadElement(view, 1), 1.0F);
}

TEST(Buffer, ZeroedAlignedAndMovable) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{100}, std::size_t{1} << 20, (std::size_t{5} << 20) + 3}) {
    Buffer buffer(bytes);
    ASSERT_EQ(buffer.bytes(), bytes);
    const std::uintptr_t alignment = bytes >= (1U << 20) ? (2U << 20) : 64U;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment, 0U);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(buffer.data()[i], std::byte{0});
    buffer.data()[bytes - 1] = std::byte{7};
    std::byte* const data = buffer.data();
    Buffer moved(std::move(buffer));
    EXPECT_EQ(moved.data(), data);
    EXPECT_EQ(moved.data()[bytes - 1], std::byte{7});
    Buffer assigned;
    assigned = std::move(moved);
    EXPECT_EQ(assigned.data(), data);
  }
}

TEST(Buffer, EmptyHoldsNothing) {
  const Buffer empty(0);
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_EQ(empty.bytes(), 0U);
}

}  // namespace
}  // namespace foretoken
