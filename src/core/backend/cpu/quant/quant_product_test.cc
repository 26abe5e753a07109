// Every instruction set against the plain loops of the reference, for equality.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/numbers/integers.h"
#include "core/backend/conformance_testing.h"
#include "core/backend/cpu/quant/packing.h"
#include "core/backend/cpu/quant/quant_testing.h"
#include "core/backend/testing/quantized_product.h"
#include "core/tensor/buffer.h"

namespace foretoken {
namespace {

using cpu::kPanel;
using cpu::QuantKernels;
using cpu::RowBlock;

std::vector<WeightFormat> QuantizedFormats() {
  std::vector<WeightFormat> formats;
  for (std::size_t i = 0; i < kWeightFormats; ++i) {
    const auto format = static_cast<WeightFormat>(i);
    if (IsQuantized(format)) formats.push_back(format);
  }
  return formats;
}

std::uint32_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// Where halves that are scales lie in a block; MXFP4 has none.
std::vector<std::size_t> HalvesOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return {0, 2};
    case WeightFormat::kQ2_K:
      return {80, 82};
    case WeightFormat::kQ3_K:
      return {108};
    case WeightFormat::kQ6_K:
      return {208};
    case WeightFormat::kMXFP4:
      return {};
    default:
      return {0};
  }
}

// A matrix of random blocks in the file's layout; unless `wild`, with scales of usual size.
struct Weights {
  Weights(WeightFormat f, std::int64_t out, std::int64_t in, std::uint32_t seed, bool wild = false)
      : format(f), outputs(out), inputs(in), row_bytes(FormatBytes(f, in)) {
    std::mt19937 generator(seed);
    blocks.resize(row_bytes * Size(outputs));
    for (std::byte& byte : blocks) byte = static_cast<std::byte>(generator());
    for (std::size_t at = 0; !wild && at < blocks.size(); at += InfoOf(format).block_bytes) {
      for (const std::size_t half : HalvesOf(format)) {
        blocks[at + half + 1] &= std::byte{0x83};  // Exponents 8 to 15: 2^-7 to 2^0, either sign.
        blocks[at + half + 1] |= std::byte{0x20};
      }
      if (format == WeightFormat::kMXFP4) {
        blocks[at] = static_cast<std::byte>(120 + std::to_integer<int>(blocks[at]) % 8);
      }
    }
    Pack();
  }

  void Pack() {
    panels = Buffer(Size(panel_count()) * cpu::QuantPanelBytes(format, inputs));
    const TensorView view{format, {outputs, inputs}, blocks.data()};
    cpu::PackQuantPanels({&view, 1}, 0, panel_count(), panels.data());
  }

  const std::byte* Row(std::int64_t output) const {
    return blocks.data() + Size(output) * row_bytes;
  }
  int panel_count() const { return (outputs + kPanel - 1) / kPanel; }
  const std::byte* Panel(std::int64_t panel) const {
    return panels.data() + Size(panel) * cpu::QuantPanelBytes(format, inputs);
  }

  WeightFormat format;
  std::int64_t outputs;
  std::int64_t inputs;
  std::size_t row_bytes;
  std::vector<std::byte> blocks;
  Buffer panels;
};

std::vector<RowBlock> Quantize(const QuantKernels& kernels, const std::vector<float>& x, int rows) {
  const int inputs = std::ssize(x) / rows;
  std::vector<RowBlock> blocks(cpu::RowBlocks(rows, inputs));
  kernels.quantize({x.data(), rows, inputs, 0, rows, blocks.data()});
  return blocks;
}

// Panels [begin, end) of the product, into `y`.
void MultiplyPanels(const QuantKernels& kernels, const Weights& weights,
                    const std::vector<RowBlock>& x, int rows, int begin, int end, bool add,
                    std::vector<float>* y) {
  kernels.product[static_cast<std::size_t>(weights.format)](
      {weights.panels.data(), cpu::QuantPanelBytes(weights.format, weights.inputs), x.data(),
       y->data(), static_cast<std::ptrdiff_t>(weights.outputs), rows,
       static_cast<int>(weights.inputs), static_cast<int>(weights.outputs), begin, end, add});
}

std::vector<float> Multiply(const QuantKernels& kernels, const Weights& weights,
                            const std::vector<float>& x, int rows) {
  std::vector<float> y(Size(rows * weights.outputs), 12345.0F);
  MultiplyPanels(kernels, weights, Quantize(kernels, x, rows), rows, 0, weights.panel_count(),
                 false, &y);
  return y;
}

std::vector<float> Reference(const Weights& weights, const std::vector<float>& x, int rows) {
  std::vector<float> y;
  for (int r = 0; r < rows; ++r) {
    const auto inputs = reference::QuantizeInputs(x.data() + r * weights.inputs, weights.inputs);
    for (std::int64_t o = 0; o < weights.outputs; ++o) {
      y.push_back(reference::QuantizedProduct(inputs, weights.format, weights.Row(o)));
    }
  }
  return y;
}

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& expected,
                    std::int64_t width) {
  ASSERT_EQ(got.size(), expected.size());
  const std::size_t columns = width;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(Bits(got[i]), Bits(expected[i])) << got[i] << " and " << expected[i] << ", row "
                                               << i / columns << ", output " << i % columns;
  }
}

class QuantProductTest : public testing::TestWithParam<const QuantKernels*> {};

TEST_P(QuantProductTest, GivesTheBitsOfTheReference) {
  constexpr int kOutputs = 37;
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    for (int rows = 1; rows <= 72; rows += rows < 20 ? 1 : 13) {  // From 20 on: 33, 46, 59, 72.
      SCOPED_TRACE(rows);
      const Weights weights(format, kOutputs, 512, static_cast<std::uint32_t>(rows));
      const auto x = Random(Size(rows) * 512, 100);
      const auto& expected = Once(fmt::format("{} {}", FormatName(format), rows),
                                  [&] { return Reference(weights, x, rows); });
      ExpectSameBits(Multiply(*GetParam(), weights, x, rows), expected, kOutputs);
    }
  }
}

TEST_P(QuantProductTest, TakesEveryWidthOfWholeBlocks) {
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    const std::int64_t block = InfoOf(format).block_elements;
    for (std::int64_t inputs = block; inputs <= 11 * block; inputs += block) {
      SCOPED_TRACE(inputs);
      const Weights weights(format, 18, inputs, 7);
      for (const int rows : {3, 25}) {
        const auto x = Random(Size(rows * inputs), 8);
        const auto& expected = Once(fmt::format("{} {} {}", FormatName(format), inputs, rows),
                                    [&] { return Reference(weights, x, rows); });
        ExpectSameBits(Multiply(*GetParam(), weights, x, rows), expected, 18);
      }
    }
  }
}

// Whatever bits a file holds: infinite and NaN scales, denormal ones, every code.
TEST_P(QuantProductTest, GivesTheBitsOfTheReferenceForAnyBlocks) {
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    const Weights weights(format, 2000, 256, 1, true);
    const auto x = Random(21 * 256, 2);
    const auto& expected =
        Once(std::string(FormatName(format)), [&] { return Reference(weights, x, 21); });
    ExpectSameBits(Multiply(*GetParam(), weights, x, 21), expected, 2000);
  }
}

// The largest integers that there are, of either sign, in every place.
TEST_P(QuantProductTest, DoesNotOverflow) {
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    Weights weights(format, 32, 256, 1);
    std::vector<std::size_t> scales =
        format == WeightFormat::kMXFP4 ? std::vector<std::size_t>{0} : std::vector<std::size_t>{};
    for (const std::size_t half : HalvesOf(format)) scales.insert(scales.end(), {half, half + 1});
    for (const int fill : {0x00, 0x77, 0x7F, 0x80, 0xFF}) {
      for (std::size_t i = 0; i < weights.blocks.size(); ++i) {
        const std::size_t at = i % InfoOf(format).block_bytes;
        if (std::ranges::count(scales, at) == 0) weights.blocks[i] = static_cast<std::byte>(fill);
      }
      weights.Pack();
      std::vector<float> x(17 * 256);  // Rows of 1, of -1, and of both in turn.
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / 256;
        x[i] = row % 3 == 0 || (row % 3 == 2 && i % 2 == 0) ? 1.0F : -1.0F;
      }
      ExpectSameBits(Multiply(*GetParam(), weights, x, 17), Reference(weights, x, 17), 32);
    }
  }
}

// Inputs that are not usual, each in a block of its own among usual ones.
std::vector<float> UnusualInputs() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float unusual[] = {0.0F,
                           -0.0F,
                           std::numeric_limits<float>::denorm_min(),
                           std::numeric_limits<float>::min(),
                           0x1p-100F,
                           0x1.fffffep-101F,
                           -std::numeric_limits<float>::max(),
                           1e30F,
                           1e-30F,
                           kInfinity,
                           -kInfinity,
                           kNan,
                           -kNan,
                           1e6F,
                           0.5F,
                           -127.0F};
  std::vector<float> x;
  std::uint32_t seed = 0;
  for (const float value : unusual) {
    for (const float scale : {0.0F, 1.0F, 1e-3F}) {  // What the row's other inputs are.
      for (const float other : Random(256, ++seed)) x.push_back(scale * other);
      x[x.size() - 256 + seed % 256] = value;
    }
  }
  return x;
}

TEST_P(QuantProductTest, TakesUnusualInputs) {
  const auto x = UnusualInputs();
  const int rows = std::ssize(x) / 256;
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    const Weights weights(format, 16, 256, 1);
    const auto expected = Reference(weights, x, rows);
    ExpectSameBits(Multiply(*GetParam(), weights, x, rows), expected, 16);
    int nans = 0;
    for (const float value : expected) nans += static_cast<int>(std::isnan(value));
    EXPECT_EQ(nans, 4 * 3 * 16);  // Rows with an infinity or a NaN, and no others.
  }
}

TEST_P(QuantProductTest, QuantizesInputsAsTheReferenceDoes) {
  auto x = UnusualInputs();
  // Ties, which go to the even integer: the largest of each block is 127, so the scale is 1.
  for (int i = 0; i < 256; ++i) {
    x.push_back(i % 32 == 0 ? 127.0F : static_cast<float>(i % 32) - 15.5F);
  }
  const int rows = std::ssize(x) / 256;
  const auto blocks = Quantize(*GetParam(), x, rows);
  for (int row = 0; row < rows; ++row) {
    const int group = row / cpu::kRowGroup * cpu::kRowGroup;
    const int in_group = std::min(rows - group, cpu::kRowGroup);
    const auto expected = reference::QuantizeInputs(x.data() + row * 256, 256);
    for (int b = 0; b < 8; ++b) {
      const RowBlock& got = blocks[group * 8 + b * in_group + row - group];
      const auto& wanted = expected[b];
      EXPECT_EQ(Bits(got.scale), Bits(wanted.scale)) << row << " " << b;
      int halves[2] = {0, 0};
      for (int j = 0; j < cpu::kInputBlock; ++j) {
        EXPECT_EQ(got.values[j], wanted.values[j]) << row << " " << b;
        halves[j / 16] -= got.values[j];
      }
      EXPECT_THAT(got.minus_halves, testing::ElementsAre(halves[0], halves[1]));
      EXPECT_EQ(got.minus_sum, halves[0] + halves[1]);
    }
  }
}

TEST_P(QuantProductTest, WritesOnlyItsPanelsAndAdds) {
  constexpr int kOutputs = 70;
  constexpr int kRows = 19;
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    const Weights weights(format, kOutputs, 512, 3);
    const auto x = Random(kRows * 512, 4);
    const auto product = Reference(weights, x, kRows);
    const auto before = Random(kRows * kOutputs, 5);
    const auto blocks = Quantize(*GetParam(), x, kRows);
    for (const bool add : {false, true}) {
      auto y = before;
      auto expected = before;
      // Parts of one product, as several threads take them; the second of five panels is nobody's.
      MultiplyPanels(*GetParam(), weights, blocks, kRows, 0, 1, add, &y);
      MultiplyPanels(*GetParam(), weights, blocks, kRows, 2, 5, add, &y);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (i % kOutputs / kPanel == 1) continue;
        expected[i] = add ? before[i] + product[i] : product[i];
      }
      ExpectSameBits(y, expected, kOutputs);
    }
  }
}

TEST(QuantPackingTest, KeepsEveryWeight) {
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    for (const std::int64_t blocks : {1, 3, 8, 13}) {
      const std::int64_t inputs = blocks * InfoOf(format).block_elements;
      const Weights weights(format, 21, inputs, 1, true);
      std::vector<float> expected(inputs);
      std::vector<float> got(inputs);
      for (std::int64_t o = 0; o < weights.outputs; ++o) {
        Dequantize(format, weights.Row(o), blocks, expected.data());
        cpu::ReadQuantOutput(format, weights.Panel(o / kPanel), inputs,
                             static_cast<int>(o % kPanel), got.data());
        for (std::size_t i = 0; i < got.size(); ++i) {
          if (std::isnan(expected[i])) continue;
          ASSERT_EQ(Bits(got[i]), Bits(expected[i])) << o << " " << i;
        }
      }
    }
  }
}

// Matrices on top of each other, in parts as several threads pack them.
TEST(QuantPackingTest, StacksMatrices) {
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    const Weights whole(format, 90, 512, 1);
    std::vector<TensorView> parts;
    std::int64_t begin = 0;
    for (const std::int64_t outputs : {3, 40, 5, 42}) {
      parts.push_back({format, {outputs, 512}, whole.Row(begin)});
      begin += outputs;
    }
    const std::size_t panel = cpu::QuantPanelBytes(format, 512);
    Buffer stacked(whole.panels.bytes());
    cpu::PackQuantPanels(parts, 0, 2, stacked.data());
    cpu::PackQuantPanels(parts, 2, 6, stacked.data() + 2 * panel);
    EXPECT_EQ(std::memcmp(stacked.data(), whole.panels.data(), 6 * panel), 0);
  }
}

// The product is that of the weights which Dequantize gives, but for the rounding of the inputs:
// half a step of 1 / 127 of the largest of a block, a fraction of which is left on average.
TEST(QuantAccuracyTest, IsNearTheProductOfDequantizedWeights) {
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    constexpr std::int64_t kInputs = 2048;
    const Weights weights(format, 64, kInputs, 5);
    const auto x = Random(4 * kInputs, 6);
    const auto got = Multiply(*AvailableQuantKernels().back(), weights, x, 4);
    std::vector<float> row(kInputs);
    double errors = 0;
    double squares = 0;
    for (std::int64_t o = 0; o < 64; ++o) {
      Dequantize(format, weights.Row(o), kInputs / InfoOf(format).block_elements, row.data());
      for (std::int64_t r = 0; r < 4; ++r) {
        double sum = 0;
        for (std::int64_t i = 0; i < kInputs; ++i) {
          sum += double{row[i]} * x[r * kInputs + i];
        }
        const double error = got[r * 64 + o] - sum;
        errors += error * error;
        squares += sum * sum;
      }
    }
    EXPECT_LT(std::sqrt(errors / squares), 0.0075);
    EXPECT_GT(std::sqrt(errors / squares), 0.0005);  // Or the test measures nothing.
  }
}

std::string Name(const testing::TestParamInfo<const QuantKernels*>& info) {
  return info.param->name;
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, QuantProductTest, testing::ValuesIn(TestedQuantKernels()),
                         Name);

}  // namespace
}  // namespace foretoken
