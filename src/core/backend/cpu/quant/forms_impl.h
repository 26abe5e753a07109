#pragma once

// Codes and scales of packed formats (layout.h) in the registers of an instruction set. Include
// after a lanes_*.h.

#include "core/backend/cpu/quant/layout.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// ---- Codes: kBits of each byte, of the eight steps of a block of inputs.

// The low bits of codes, from the vectors that a block is stored in.
template <int kBits>
FT_INLINE void UnpackLowBits(const Ints* vectors, Ints* codes) {
  static_assert(kBits >= 2 && kBits <= 8);
  if constexpr (kBits == 8) {
#pragma GCC unroll 8
    for (int s = 0; s < 8; ++s) codes[s] = vectors[s];
  } else if constexpr (kBits >= 4) {
    const Ints mask = SetBytes(0x0F);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      codes[v] = And(vectors[v], mask);
      codes[v + 4] = And(ShiftRight<4>(vectors[v]), mask);
    }
  } else {
    const Ints mask = SetBytes(0x03);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      codes[4 * v] = And(vectors[v], mask);
      codes[4 * v + 1] = And(ShiftRight<2>(vectors[v]), mask);
      codes[4 * v + 2] = And(ShiftRight<4>(vectors[v]), mask);
      codes[4 * v + 3] = And(ShiftRight<6>(vectors[v]), mask);
    }
  }
}

// Bit `kFrom` on of each byte, moved to bit `kTo` on; bits beside them come along.
template <int kFrom, int kTo>
FT_INLINE Ints MoveBits(Ints v) {
  if constexpr (kFrom >= kTo) return ShiftRight<kFrom - kTo>(v);
  if constexpr (kFrom < kTo) return ShiftLeft<kTo - kFrom>(v);
}

// The top bit of codes of kTop + 1 bits, from one vector for all steps.
template <int kTop, int kStep = 0>
FT_INLINE void AddTopBit(Ints tops, Ints* codes) {
  if constexpr (kStep < 8) {
    codes[kStep] = OrMasked(codes[kStep], MoveBits<kStep, kTop>(tops), SetBytes(1 << kTop));
    AddTopBit<kTop, kStep + 1>(tops, codes);
  }
}

// The upper two of six bits, from one vector for four steps.
template <int kStep = 0>
FT_INLINE void AddTopPair(Ints tops, Ints* codes) {
  if constexpr (kStep < 4) {
    codes[kStep] = OrMasked(codes[kStep], MoveBits<2 * kStep, 4>(tops), SetBytes(0x30));
    AddTopPair<kStep + 1>(tops, codes);
  }
}

// The values that codes of four bits stand for, made positive.
struct PositiveValues {
  std::uint8_t bytes[16];
};
constexpr PositiveValues Plus(const std::array<std::int8_t, 16>& values, int offset) {
  PositiveValues positive = {};
  for (int i = 0; i < 16; ++i) positive.bytes[i] = static_cast<std::uint8_t>(values[i] + offset);
  return positive;
}
constexpr PositiveValues kNonLinearPlus128 = Plus(kNonLinearValues, 128);
constexpr PositiveValues kFp4Plus16 = Plus(kFp4Values, 16);

// How a format's weights enter a dot product: as integers below 2^kBits that are kOffset too large.
template <WeightFormat kFormat>
struct Factors {
  using Form = PackedForm<kFormat>;
  static constexpr bool kNonLinear =
      kFormat == WeightFormat::kIQ4_NL || kFormat == WeightFormat::kIQ4_XS;
  static constexpr bool kFp4 = kFormat == WeightFormat::kMXFP4;
  static constexpr int kBits = kNonLinear ? 8 : kFp4 ? 5 : Form::kStoredBits;
  static constexpr int kOffset = kNonLinear ? 128 : kFp4 ? 16 : Form::kCodes.offset;

  // The factors of eight steps. kLoadFirst: loads all vectors before anything else, in the order in
  // which they lie.
  template <bool kLoadFirst>
  static FT_INLINE void Unpack(const std::byte* from, Ints* codes) {
    constexpr int kBitsStored = Form::kStoredBits;
    Ints vectors[kBitsStored];
#pragma GCC unroll 8
    for (int v = 0; v < kBitsStored; ++v) {
      vectors[v] = LoadInts(from + 64 * v);
      if constexpr (kLoadFirst) LoadNow(&vectors[v]);
    }
    UnpackLowBits<kBitsStored>(vectors, codes);
    if constexpr (kBitsStored == 3) AddTopBit<2>(vectors[2], codes);
    if constexpr (kBitsStored == 5) AddTopBit<4>(vectors[4], codes);
    if constexpr (kBitsStored == 6) {
      AddTopPair(vectors[4], codes);
      AddTopPair(vectors[5], codes + 4);
    }
    if constexpr (kNonLinear || kFp4) {
#pragma GCC unroll 8
      for (int s = 0; s < 8; ++s) {
        codes[s] = LookUp(kNonLinear ? kNonLinearPlus128.bytes : kFp4Plus16.bytes, codes[s]);
      }
    }
  }
};

// ---- Scales of a stretch, to floats [blocks][kScales][kPanel].

// Numbers of six bits, from words with the low four bits of eight and one with all upper bits.
template <int kIndex>
FT_INLINE Ints SixBits(const Ints* lows, Ints tops) {
  const Ints low = And(ShiftRight<kIndex % 8 * 4>(lows[kIndex / 8]), SetInts(15));
  return OrMasked(low, MoveBits<2 * kIndex, 4>(tops), SetInts(48));
}

// Q4_K and Q5_K: scale and less of eight groups.
template <int kGroup = 0>
FT_INLINE void SixAndLess(const Ints* lows, Ints tops, Floats scale, Floats less, float* to) {
  if constexpr (kGroup < 8) {
    StoreFloats(to, Mul(scale, ToFloats(SixBits<kGroup>(lows, tops))));
    StoreFloats(to + kPanel, Mul(less, ToFloats(SixBits<8 + kGroup>(lows, tops))));
    SixAndLess<kGroup + 1>(lows, tops, scale, less, to + 2 * kPanel);
  }
}

// Q3_K and IQ4_XS: the scales of kGroups groups.
template <int kGroups, int kGroup = 0>
FT_INLINE void SignedSix(const Ints* lows, Ints tops, Floats scale, float* to) {
  if constexpr (kGroup < kGroups) {
    const Ints number = AddInts(SixBits<kGroup>(lows, tops), SetInts(0U - 32));
    StoreFloats(to, Mul(scale, ToFloats(number)));
    SignedSix<kGroups, kGroup + 1>(lows, tops, scale, to + kPanel);
  }
}

// 2^(exponent - 128) as the product of two powers, since the smallest have an exponent below what
// that of a float is.
FT_INLINE Floats HalfPowers(const std::byte* from) {
  const Ints exponents = LoadBytes(from);
  const Ints half = ShiftRight<1>(exponents);
  const Ints rest = AddInts(half, And(exponents, SetInts(1)));
  return Mul(AsFloats(ShiftLeft<23>(AddInts(half, SetInts(63)))),
             AsFloats(ShiftLeft<23>(AddInts(rest, SetInts(63)))));
}

template <ScaleForm kForm>
FT_INLINE void UnpackScales(const std::byte* from, int blocks, float* to) {
  if constexpr (kForm == ScaleForm::kHalf || kForm == ScaleForm::kHalfAndLess) {
    const int count = kForm == ScaleForm::kHalf ? blocks : 2 * blocks;
    for (int i = 0; i < count; ++i) StoreFloats(to + kPanel * i, LoadHalves(from + 32 * i));
  } else if constexpr (kForm == ScaleForm::kPower) {
    for (int i = 0; i < blocks; ++i) StoreFloats(to + kPanel * i, HalfPowers(from + kPanel * i));
  } else {
    const Floats scale = LoadHalves(from);
    from += 32;
    if constexpr (kForm == ScaleForm::kBytes) {
      for (int g = 0; g < 16; ++g) {
        StoreFloats(to + kPanel * g, Mul(scale, ToFloats(LoadSignedBytes(from + kPanel * g))));
      }
    } else if constexpr (kForm == ScaleForm::kNibbles) {
      const Floats less = LoadHalves(from);
      from += 32;
      for (int g = 0; g < 16; ++g) {
        const Ints pair = LoadBytes(from + kPanel * g);
        float* const place = to + kPanel * (g / 2 * 4 + g % 2);
        StoreFloats(place, Mul(scale, ToFloats(And(pair, SetInts(15)))));
        StoreFloats(place + 2 * kPanel, Mul(less, ToFloats(ShiftRight<4>(pair))));
      }
    } else if constexpr (kForm == ScaleForm::kSixAndLess) {
      const Floats less = LoadHalves(from);
      const Ints lows[2] = {LoadInts(from + 32), LoadInts(from + 96)};
      SixAndLess(lows, LoadInts(from + 160), scale, less, to);
    } else if constexpr (kForm == ScaleForm::kSix16) {
      const Ints lows[2] = {LoadInts(from), LoadInts(from + 64)};
      SignedSix<16>(lows, LoadInts(from + 128), scale, to);
    } else {
      const Ints low = LoadInts(from);
      SignedSix<8>(&low, LoadWords16(from + 64), scale, to);
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
