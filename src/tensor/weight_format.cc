#include "tensor/weight_format.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace foretoken {
namespace {

// A block is read as bytes: its fields have no alignment.
using Bytes = const std::uint8_t*;

std::uint32_t Word16(Bytes at) { return at[0] | static_cast<std::uint32_t>(at[1]) << 8; }
std::uint32_t Word32(Bytes at) { return Word16(at) | Word16(at + 2) << 16; }
float Half(Bytes at) { return HalfToFloat(static_cast<std::uint16_t>(Word16(at))); }
int Signed(std::uint8_t byte) { return static_cast<std::int8_t>(byte); }
int Low(std::uint8_t byte) { return byte & 15; }
int High(std::uint8_t byte) { return byte >> 4; }

// Formats of 32 elements: byte j holds elements j (its low half) and j + 16.
constexpr int kHalfBlock = 16;

void Q8_0(Bytes block, float* out) {
  const float d = Half(block);
  for (int j = 0; j < 2 * kHalfBlock; ++j) out[j] = d * static_cast<float>(Signed(block[2 + j]));
}

void Q4_0(Bytes block, float* out) {
  const float d = Half(block);
  for (int j = 0; j < kHalfBlock; ++j) {
    out[j] = d * static_cast<float>(Low(block[2 + j]) - 8);
    out[j + kHalfBlock] = d * static_cast<float>(High(block[2 + j]) - 8);
  }
}

void Q4_1(Bytes block, float* out) {
  const float d = Half(block);
  const float m = Half(block + 2);
  for (int j = 0; j < kHalfBlock; ++j) {
    out[j] = d * static_cast<float>(Low(block[4 + j])) + m;
    out[j + kHalfBlock] = d * static_cast<float>(High(block[4 + j])) + m;
  }
}

// The fifth bits of 32 elements are the bits of one word.
int FifthBit(std::uint32_t bits, int element) { return static_cast<int>(bits >> element & 1) << 4; }

void Q5_0(Bytes block, float* out) {
  const float d = Half(block);
  const std::uint32_t bits = Word32(block + 2);
  for (int j = 0; j < kHalfBlock; ++j) {
    const int k = j + kHalfBlock;
    out[j] = d * static_cast<float>((Low(block[6 + j]) | FifthBit(bits, j)) - 16);
    out[k] = d * static_cast<float>((High(block[6 + j]) | FifthBit(bits, k)) - 16);
  }
}

void Q5_1(Bytes block, float* out) {
  const float d = Half(block);
  const float m = Half(block + 2);
  const std::uint32_t bits = Word32(block + 4);
  for (int j = 0; j < kHalfBlock; ++j) {
    const int k = j + kHalfBlock;
    out[j] = d * static_cast<float>(Low(block[8 + j]) | FifthBit(bits, j)) + m;
    out[k] = d * static_cast<float>(High(block[8 + j]) | FifthBit(bits, k)) + m;
  }
}

// Formats of 256 elements, in two halves of 128. A half's two-bit parts lie in 32 bytes: byte l
// holds those of elements l, l + 32, l + 64 and l + 96.
void Q2_K(Bytes block, float* out) {
  const Bytes scales = block;  // One a 16 elements: of the values, and of what they are less.
  const float d = Half(block + 80);
  const float dmin = Half(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int value = block[16 + half * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const float scale = d * static_cast<float>(Low(scales[i / 16]));
    const float less = dmin * static_cast<float>(High(scales[i / 16]));
    out[i] = scale * static_cast<float>(value) - less;
  }
}

void Q3_K(Bytes block, float* out) {
  const Bytes high = block;  // Bit k of byte l: of element l of the k-th 32.
  const Bytes values = block + 32;
  const Bytes packed = block + 96;  // 16 scales of six bits: four of them, then two.
  const float d = Half(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 16;
    const int low = group < 8 ? Low(packed[group]) : High(packed[group - 8]);
    const int top = packed[8 + group % 4] >> (group / 4 * 2) & 3;
    const float scale = d * static_cast<float>((low | top << 4) - 32);
    const int value = values[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const int less = (high[i % 32] >> (i / 32) & 1) != 0 ? 0 : 4;
    out[i] = scale * static_cast<float>(value - less);
  }
}

// The eight scales of six bits of a Q4_K or Q5_K block, and the eight of what the values are less.
struct SixBitScales {
  int scale;
  int less;
};
SixBitScales ScalesOf(Bytes packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {Low(packed[group + 4]) | packed[group - 4] >> 6 << 4,
          High(packed[group + 4]) | packed[group] >> 6 << 4};
}

void Q4_K(Bytes block, float* out) {
  const float d = Half(block);
  const float dmin = Half(block + 2);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const SixBitScales scales = ScalesOf(block + 4, group);
    const std::uint8_t pair = block[16 + i / 64 * 32 + i % 32];
    const int value = group % 2 == 0 ? Low(pair) : High(pair);
    out[i] = d * static_cast<float>(scales.scale) * static_cast<float>(value) -
             dmin * static_cast<float>(scales.less);
  }
}

void Q5_K(Bytes block, float* out) {
  const float d = Half(block);
  const float dmin = Half(block + 2);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const SixBitScales scales = ScalesOf(block + 4, group);
    const std::uint8_t pair = block[48 + i / 64 * 32 + i % 32];
    const int fifth = (block[16 + i % 32] >> group & 1) << 4;
    const int value = (group % 2 == 0 ? Low(pair) : High(pair)) | fifth;
    out[i] = d * static_cast<float>(scales.scale) * static_cast<float>(value) -
             dmin * static_cast<float>(scales.less);
  }
}

void Q6_K(Bytes block, float* out) {
  const float d = Half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    const std::uint8_t pair = block[half * 64 + i % 64];
    const int low = quarter < 2 ? Low(pair) : High(pair);
    const int top = block[128 + half * 32 + i % 32] >> (quarter * 2) & 3;
    const float scale = d * static_cast<float>(Signed(block[192 + i / 16]));
    out[i] = scale * static_cast<float>((low | top << 4) - 32);
  }
}

// What the four bits of IQ4_NL and IQ4_XS stand for.
constexpr std::array<int, 16> kNonLinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

void IQ4_NL(Bytes block, float* out) {
  const float d = Half(block);
  for (int j = 0; j < kHalfBlock; ++j) {
    out[j] = d * static_cast<float>(kNonLinear[Low(block[2 + j])]);
    out[j + kHalfBlock] = d * static_cast<float>(kNonLinear[High(block[2 + j])]);
  }
}

void IQ4_XS(Bytes block, float* out) {
  const float d = Half(block);
  const std::uint32_t tops = Word16(block + 2);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const std::uint8_t scale_pair = block[4 + group / 2];
    const int low = group % 2 == 0 ? Low(scale_pair) : High(scale_pair);
    const int top = static_cast<int>(tops >> (2 * group) & 3);
    const std::uint8_t pair = block[8 + group * 16 + i % 16];
    const int value = kNonLinear[i % 32 < 16 ? Low(pair) : High(pair)];
    out[i] = d * static_cast<float>((low | top << 4) - 32) * static_cast<float>(value);
  }
}

// Twice what the four bits of MXFP4 stand for, and half the power of two that is their scale.
constexpr std::array<int, 16> kFp4Doubled = {0, 1,  2,  3,  4,  6,  8,  12,
                                             0, -1, -2, -3, -4, -6, -8, -12};
float HalfPower(std::uint8_t exponent) {
  // 2^(exponent - 128); the two smallest are below what a float's exponent can say.
  const std::uint32_t bits =
      exponent < 2 ? 0x00200000U << exponent : static_cast<std::uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

void MXFP4(Bytes block, float* out) {
  const float d = HalfPower(block[0]);
  for (int j = 0; j < kHalfBlock; ++j) {
    out[j] = d * static_cast<float>(kFp4Doubled[Low(block[1 + j])]);
    out[j + kHalfBlock] = d * static_cast<float>(kFp4Doubled[High(block[1 + j])]);
  }
}

using BlockReader = void (*)(Bytes block, float* out);
constexpr std::array<BlockReader, kWeightFormats> kReaders = {
    nullptr, nullptr, nullptr, Q8_0, Q4_0, Q4_1,   Q5_0,   Q5_1,
    Q2_K,    Q3_K,    Q4_K,    Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4};

}  // namespace

std::optional<WeightFormat> ParseWeightFormat(std::string_view name) {
  for (std::size_t i = 0; i < kWeightFormats; ++i) {
    if (kWeightFormatInfos[i].name == name) return static_cast<WeightFormat>(i);
  }
  return std::nullopt;
}

void Dequantize(WeightFormat format, const std::byte* data, std::int64_t blocks, float* out) {
  FT_CHECK(IsQuantized(format));
  const BlockReader read = kReaders[static_cast<std::size_t>(format)];
  const WeightFormatInfo& info = InfoOf(format);
  const auto* block = reinterpret_cast<Bytes>(data);
  for (std::int64_t i = 0; i < blocks; ++i) {
    read(block, out);
    block += info.block_bytes;
    out += info.block_elements;
  }
}

}  // namespace foretoken
