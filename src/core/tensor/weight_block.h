#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/tensor/weight_format.h"

namespace foretoken {

inline constexpr int kMostBlockElements = 256;
inline constexpr int kMostGroups = 16;

/// What the codes of a quantised format stand for: the value of code c is c - offset, or values[c].
/// A `group` of adjacent elements shares a scale and, if `has_less`, what they are less by.
struct WeightCodes {
  int bits;
  int offset;
  const std::array<std::int8_t, 16>* values;
  int group;
  bool has_less;
};

/// What the four bits of IQ4_NL and IQ4_XS stand for.
inline constexpr std::array<std::int8_t, 16> kNonLinearValues = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// Twice what the four bits of MXFP4 stand for (its scales are halved).
inline constexpr std::array<std::int8_t, 16> kFp4Values = {0, 1,  2,  3,  4,  6,  8,  12,
                                                           0, -1, -2, -3, -4, -6, -8, -12};

/// In the order of WeightFormat; those of formats that are not quantised have no bits.
inline constexpr std::array<WeightCodes, kWeightFormats> kWeightCodes = {{
    {0, 0, nullptr, 0, false},             // F32
    {0, 0, nullptr, 0, false},             // F16
    {0, 0, nullptr, 0, false},             // BF16
    {8, 128, nullptr, 32, false},          // Q8_0
    {4, 8, nullptr, 32, false},            // Q4_0
    {4, 0, nullptr, 32, true},             // Q4_1
    {5, 16, nullptr, 32, false},           // Q5_0
    {5, 0, nullptr, 32, true},             // Q5_1
    {2, 0, nullptr, 16, true},             // Q2_K
    {3, 4, nullptr, 16, false},            // Q3_K
    {4, 0, nullptr, 32, true},             // Q4_K
    {5, 0, nullptr, 32, true},             // Q5_K
    {6, 32, nullptr, 16, false},           // Q6_K
    {4, 0, &kNonLinearValues, 32, false},  // IQ4_NL
    {4, 0, &kNonLinearValues, 32, false},  // IQ4_XS
    {4, 0, &kFp4Values, 32, false},        // MXFP4
}};

constexpr const WeightCodes& CodesOf(WeightFormat format) {
  return kWeightCodes[static_cast<std::size_t>(format)];
}
constexpr int ValueOf(const WeightCodes& meaning, std::uint8_t code) {
  return meaning.values != nullptr ? (*meaning.values)[code] : code - meaning.offset;
}

/// The integers that a block of a quantised format stores, whatever the format: element i is
///   ScaleOf(group) * ValueOf(codes[i]) - LessOf(group),   group = i / CodesOf(format).group.
struct WeightBlock {
  std::array<std::uint8_t, kMostBlockElements> codes;
  std::uint16_t scale;                                ///< Bits of a half; of MXFP4 an exponent.
  std::uint16_t less;                                 ///< Bits of a half, where the format has it.
  std::array<std::int8_t, kMostGroups> group_scales;  ///< What `scale` is multiplied by.
  std::array<std::uint8_t, kMostGroups> group_less;   ///< What `less` is multiplied by.
};

void UnpackBlock(WeightFormat format, const std::byte* data, WeightBlock* block);
/// The other way round: the bytes of a block that has these integers.
void PackBlock(WeightFormat format, const WeightBlock& block, std::byte* data);

/// The scale of a group and what its values are less by, 0 where the format has no such thing. Both
/// are exact products.
float ScaleOf(WeightFormat format, const WeightBlock& block, int group);
float LessOf(WeightFormat format, const WeightBlock& block, int group);

/// Writes the block's elements and returns where they end.
float* WriteElements(WeightFormat format, const WeightBlock& block, float* out);

}  // namespace foretoken
