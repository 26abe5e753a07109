#pragma once

#include <array>

// The portable arithmetic (docs/develop/arithmetic.md) in plain operations on single numbers.

namespace foretoken::reference {

/// Numbers that are added up side by side.
inline constexpr int kLanes = 16;
using Lanes = std::array<float, kLanes>;

/// The sum of the lanes, in the order of a tree.
float SumOf(const Lanes& lanes);

/// e^x for x <= 88; 0 below -87.
float Exp(float x);
/// 2^x for x <= 127, 0 below -126, to the last bits of a float; coarsely, to 5e-5 of it.
float Exp2(float x);
float CoarseExp2(float x);

}  // namespace foretoken::reference
