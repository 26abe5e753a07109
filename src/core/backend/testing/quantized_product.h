#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/weight_format.h"

namespace foretoken::reference {

/// Inputs of a row that are quantised together (docs/develop/arithmetic.md).
inline constexpr int kInputBlock = 32;

/// A block of a row of inputs: value j stands for scale * values[j].
struct InputBlock {
  std::array<std::int8_t, kInputBlock> values;
  float scale;
};

/// A block of a row of inputs, as InputBlock, with values of 16 bits.
struct WideBlock {
  std::array<std::int16_t, kInputBlock> values;
  float scale;
};

/// kInputBlock floats in a block of 16 bits.
WideBlock QuantizeWide(const float* x);

/// `width`, a multiple of kInputBlock, floats in blocks.
std::vector<InputBlock> QuantizeInputs(const float* x, std::int64_t width);

/// The product of a row of inputs and one output's weights, blocks of `format`, as
/// docs/develop/arithmetic.md defines it, in plain loops: every other implementation gives these
/// bits.
float QuantizedProduct(const std::vector<InputBlock>& x, WeightFormat format,
                       const std::byte* weights);

}  // namespace foretoken::reference
