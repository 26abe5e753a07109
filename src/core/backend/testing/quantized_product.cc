#include "core/backend/testing/quantized_product.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/tensor/weight_block.h"

namespace foretoken::reference {
namespace {

// Blocks whose largest value is smaller count as zeros: 127 divided by it stays far from infinity.
constexpr float kSmallest = 0x1p-100F;

// For |x| < 2^22: adding what makes the last bit of a float stand for one rounds, ties to even.
float ToNearest(float x) {
  constexpr float kIntegersBegin = 0x1.8p23F;
  return (x + kIntegersBegin) - kIntegersBegin;
}

// Integers as far from zero as the larger half of their range goes, either way.
template <typename Block, typename Integer = typename decltype(Block::values)::value_type>
Block QuantizeBlock(const float* x) {
  constexpr auto kMost = static_cast<float>(std::numeric_limits<Integer>::max());
  Block block = {};
  float largest = 0;
  for (int j = 0; j < kInputBlock; ++j) {
    if (!std::isfinite(x[j])) {
      block.scale = std::numeric_limits<float>::quiet_NaN();
      return block;
    }
    largest = std::max(largest, std::abs(x[j]));
  }
  if (largest < kSmallest) return block;
  block.scale = largest / kMost;
  const float inverse = kMost / largest;
  for (int j = 0; j < kInputBlock; ++j) {
    block.values[j] = static_cast<Integer>(ToNearest(x[j] * inverse));
  }
  return block;
}

// The integers of a group of a weight block, times those of the inputs that it meets.
std::int32_t ProductOfGroup(const WeightCodes& meaning, const WeightBlock& block, int group,
                            const InputBlock& x) {
  std::int32_t product = 0;
  for (int i = group * meaning.group; i < (group + 1) * meaning.group; ++i) {
    product += ValueOf(meaning, block.codes[i]) * x.values[i % kInputBlock];
  }
  return product;
}

std::int32_t SumOfGroup(const WeightCodes& meaning, int group, const InputBlock& x) {
  std::int32_t sum = 0;
  for (int i = group * meaning.group; i < (group + 1) * meaning.group; ++i) {
    sum += x.values[i % kInputBlock];
  }
  return sum;
}

}  // namespace

WideBlock QuantizeWide(const float* x) { return QuantizeBlock<WideBlock>(x); }

std::vector<InputBlock> QuantizeInputs(const float* x, std::int64_t width) {
  FT_CHECK(width % kInputBlock == 0, "{} inputs are no whole blocks of {}", width, kInputBlock);
  std::vector<InputBlock> blocks;
  for (std::int64_t i = 0; i < width; i += kInputBlock) {
    blocks.push_back(QuantizeBlock<InputBlock>(x + i));
  }
  return blocks;
}

float QuantizedProduct(const std::vector<InputBlock>& x, WeightFormat format,
                       const std::byte* weights) {
  const WeightCodes& meaning = CodesOf(format);
  const std::size_t block_elements = InfoOf(format).block_elements;
  WeightBlock block;
  float sum = 0;
  for (std::size_t b = 0; b < x.size(); ++b) {
    const std::size_t element = b * kInputBlock % block_elements;
    if (element == 0) {
      UnpackBlock(format, weights, &block);
      weights += InfoOf(format).block_bytes;
    }
    const int groups = kInputBlock / meaning.group;
    const int first = Int(element) / meaning.group;
    float scaled = 0;  // What the block gives, but for the scale of its inputs.
    for (int g = 0; g < groups; ++g) {
      const float product = static_cast<float>(ProductOfGroup(meaning, block, first + g, x[b]));
      const float scale = ScaleOf(format, block, first + g);
      scaled = g == 0 ? product * scale : std::fma(product, scale, scaled);
    }
    for (int g = 0; meaning.has_less && g < groups; ++g) {
      const float inputs = static_cast<float>(SumOfGroup(meaning, first + g, x[b]));
      scaled = std::fma(-inputs, LessOf(format, block, first + g), scaled);
    }
    sum = std::fma(scaled, x[b].scale, sum);
  }
  return std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : sum;
}

}  // namespace foretoken::reference
