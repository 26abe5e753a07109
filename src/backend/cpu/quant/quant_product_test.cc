// Every instruction set against the plain loops of the reference, for equality.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/quant/packing.h"
#include "backend/cpu/quant/quant_isa.h"
#include "backend/reference/quantized_product.h"
#include "tensor/buffer.h"
#include "tensor/half.h"

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
    blocks.resize(row_bytes * static_cast<std::size_t>(outputs));
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
    panels = Buffer(static_cast<std::size_t>((outputs + kPanel - 1) / kPanel) *
                    cpu::QuantPanelBytes(format, inputs));
    for (std::int64_t panel = 0; panel * kPanel < outputs; ++panel) {
      cpu::PanelRows rows = {};
      for (std::int64_t o = panel * kPanel; o < std::min(outputs, (panel + 1) * kPanel); ++o) {
        rows[static_cast<std::size_t>(o % kPanel)] = Row(o);
      }
      cpu::PackQuantPanel(format, rows, inputs, Panel(panel));
    }
  }

  const std::byte* Row(std::int64_t output) const {
    return blocks.data() + static_cast<std::size_t>(output) * row_bytes;
  }
  std::byte* Panel(std::int64_t panel) {
    return panels.data() + static_cast<std::size_t>(panel) * cpu::QuantPanelBytes(format, inputs);
  }

  WeightFormat format;
  std::int64_t outputs;
  std::int64_t inputs;
  std::size_t row_bytes;
  std::vector<std::byte> blocks;
  Buffer panels;
};

std::vector<float> Random(std::size_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<RowBlock> Quantize(const QuantKernels& kernels, const std::vector<float>& x, int rows) {
  const int inputs = static_cast<int>(x.size()) / rows;
  std::vector<RowBlock> blocks(cpu::RowBlocks(rows, inputs));
  kernels.quantize({x.data(), rows, inputs, 0, rows, blocks.data()});
  return blocks;
}

std::vector<float> Multiply(const QuantKernels& kernels, Weights& weights,
                            const std::vector<float>& x, int rows) {
  const std::vector<RowBlock> blocks = Quantize(kernels, x, rows);
  std::vector<float> y(static_cast<std::size_t>(rows * weights.outputs), 12345.0F);
  kernels.product[static_cast<std::size_t>(weights.format)](
      {weights.panels.data(), blocks.data(), y.data(), rows, static_cast<int>(weights.inputs),
       static_cast<int>(weights.outputs), 0,
       static_cast<int>((weights.outputs + kPanel - 1) / kPanel), false});
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
                    std::int64_t outputs) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(Bits(got[i]), Bits(expected[i]))
        << got[i] << " and " << expected[i] << ", row " << i / static_cast<std::size_t>(outputs)
        << ", output " << i % static_cast<std::size_t>(outputs);
  }
}

class QuantProductTest : public testing::TestWithParam<const QuantKernels*> {};

TEST_P(QuantProductTest, GivesTheBitsOfTheReference) {
  for (const WeightFormat format : QuantizedFormats()) {
    SCOPED_TRACE(FormatName(format));
    for (const int rows : {1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 37}) {
      SCOPED_TRACE(rows);
      Weights weights(format, 37, 512, static_cast<std::uint32_t>(rows));
      const auto x = Random(static_cast<std::size_t>(rows) * 512, 100);
      ExpectSameBits(Multiply(*GetParam(), weights, x, rows), Reference(weights, x, rows), 37);
    }
  }
}

std::string Name(const testing::TestParamInfo<const QuantKernels*>& info) {
  return info.param->name;
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, QuantProductTest,
                         testing::ValuesIn(AvailableQuantKernels()), Name);

}  // namespace
}  // namespace foretoken
