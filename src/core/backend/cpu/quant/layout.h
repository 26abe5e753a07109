#pragma once

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/quant/quant_kernels.h"
#include "core/tensor/weight_block.h"

// How quantised weights are packed, for those who pack and for kernels. Constants only.
//
// A panel is kPanel outputs, so that a lane of a vector is an output. Along the inputs it is cut in
// stretches of 256, the last of which may be shorter in formats with blocks of 32. A stretch holds
// the scales of its blocks of 32 inputs, then their codes: as many bytes as the blocks of the file,
// padded to whole cache lines (Q6_K 1 % and Q3_K 2 % more; one row of Q6_K takes 18 % longer where
// loads straddle them).
//
// Codes of a block: vectors of 64 bytes, byte 4 o + j of output o. Step s are inputs 4 s + j.
//   8 bits         vector s: the codes of step s
//   4, 5, 6 bits   vector v < 4: the low four bits of step v and, above them, of step v + 4
//   5 bits         vector 4: bit s is the fifth bit of step s
//   6 bits         vector 4 + t: bits 2 i and 2 i + 1 are the upper bits of step 4 t + i
//   2, 3 bits      vector t < 2: bits 2 i and 2 i + 1 are the low bits of step 4 t + i
//   3 bits         vector 2: bit s is the third bit of step s
//
// Scales: numbers of the 16 outputs side by side, as ScaleForm says.

namespace foretoken::cpu {

inline constexpr int kStretchBlocks = 8;
inline constexpr int kStretchInputs = kStretchBlocks * kInputBlock;

enum class ScaleForm {
  kHalf,         ///< A block: scale (half).
  kHalfAndLess,  ///< A block: scale, less (halves).
  kPower,        ///< A block: exponent (byte).
  kBytes,        ///< scale (half); of 16 groups: a signed byte.
  kNibbles,      ///< scale, less (halves); of 16 groups: a byte, scale low and less high.
  kSixAndLess,   ///< scale, less (halves); six bits of 8 groups, six bits of their less.
  kSix16,        ///< scale (half); six bits of 16 groups, 32 too large.
  kSix8,         ///< scale (half); six bits of 8 groups, 32 too large.
};
// Six bits: words of 32 bits with the low four bits of eight numbers each, then one with the upper
// two bits of all (of 16 bits where they are eight).

constexpr ScaleForm ScaleFormOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
      return ScaleForm::kHalfAndLess;
    case WeightFormat::kMXFP4:
      return ScaleForm::kPower;
    case WeightFormat::kQ6_K:
      return ScaleForm::kBytes;
    case WeightFormat::kQ2_K:
      return ScaleForm::kNibbles;
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return ScaleForm::kSixAndLess;
    case WeightFormat::kQ3_K:
      return ScaleForm::kSix16;
    case WeightFormat::kIQ4_XS:
      return ScaleForm::kSix8;
    default:
      return ScaleForm::kHalf;
  }
}

/// Bytes of a stretch of so many blocks of inputs.
constexpr std::ptrdiff_t StretchBytes(WeightFormat format, int blocks) {
  const auto bytes =
      static_cast<std::ptrdiff_t>(kPanel * FormatBytes(format, std::int64_t{blocks} * kInputBlock));
  return (bytes + 63) / 64 * 64;
}

/// A format in a packed panel, for kernels to be made from.
template <WeightFormat kFormat>
struct PackedForm {
  static constexpr WeightCodes kCodes = CodesOf(kFormat);
  static constexpr ScaleForm kScaleForm = ScaleFormOf(kFormat);
  static constexpr int kStoredBits = kCodes.bits;
  static constexpr int kCodeBytes = kPanel * kInputBlock * kStoredBits / 8;
  /// Bytes of the scales of a block of inputs: the share of its groups in a whole stretch.
  static constexpr int kScaleBytes =
      kPanel * static_cast<int>(FormatBytes(kFormat, kStretchInputs)) / kStretchBlocks - kCodeBytes;
  static constexpr std::ptrdiff_t kStretchBytes = StretchBytes(kFormat, kStretchBlocks);
  /// Groups of a block of inputs, and all numbers of its outputs: scales of groups, then less.
  static constexpr int kGroups = kInputBlock / kCodes.group;
  static constexpr int kScales = kGroups * (kCodes.has_less ? 2 : 1);
};

}  // namespace foretoken::cpu
