#include "core/tensor/weight_block.h"

#include <bit>

#include "base/check.h"
#include "core/tensor/block_bytes.h"
#include "core/tensor/half.h"

namespace foretoken {
namespace {

// A block is read as bytes: its fields have no alignment.
using Bytes = const std::uint8_t*;

std::uint16_t Word16(Bytes at) { return static_cast<std::uint16_t>(at[0] | at[1] << 8); }
std::uint8_t Low(std::uint8_t byte) { return byte & 15; }
std::uint8_t High(std::uint8_t byte) { return byte >> 4; }

// Formats of 32 elements: byte j holds the low four bits of elements j (its low half) and j + 16.
void Nibbles(Bytes from, std::uint8_t* codes) {
  for (int j = 0; j < 16; ++j) codes[j] = Low(from[j]);
  for (int j = 0; j < 16; ++j) codes[j + 16] = High(from[j]);
}

// The fifth bits of 32 elements are the bits of four bytes. Loops like this one keep to what
// compilers turn into vectors: packing a model reads all of its blocks.
void AddFifthBits(Bytes bits, std::uint8_t* codes) {
  constexpr std::uint8_t kBits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
  for (int byte = 0; byte < 4; ++byte) {
    for (int k = 0; k < 8; ++k) codes[byte * 8 + k] |= (bits[byte] & kBits[k]) != 0 ? 16 : 0;
  }
}

// Bit `group` of byte l: the bit `to` of element l of that group of 32.
void AddBits(Bytes bits, int to, std::uint8_t* codes) {
  for (int group = 0; group < 8; ++group) {
    for (int l = 0; l < 32; ++l) codes[group * 32 + l] |= ByteOf((bits[l] >> group & 1) << to);
  }
}

void ReadQ8_0(Bytes from, WeightBlock* block) {
  block->scale = Word16(from);
  for (int j = 0; j < 32; ++j) block->codes[j] = from[2 + j] ^ 0x80;
}

void ReadQ4_0(Bytes from, WeightBlock* block) {
  block->scale = Word16(from);
  Nibbles(from + 2, block->codes.data());
}

void ReadQ4_1(Bytes from, WeightBlock* block) {
  block->scale = Word16(from);
  block->less = Word16(from + 2) ^ kHalfSign;
  Nibbles(from + 4, block->codes.data());
}

void ReadQ5_0(Bytes from, WeightBlock* block) {
  block->scale = Word16(from);
  Nibbles(from + 6, block->codes.data());
  AddFifthBits(from + 2, block->codes.data());
}

void ReadQ5_1(Bytes from, WeightBlock* block) {
  block->scale = Word16(from);
  block->less = Word16(from + 2) ^ kHalfSign;
  Nibbles(from + 8, block->codes.data());
  AddFifthBits(from + 4, block->codes.data());
}

// Formats of 256 elements, in two halves of 128. A half's two-bit parts lie in 32 bytes: byte l
// holds those of elements l, l + 32, l + 64 and l + 96.
void AddTwoBits(Bytes from, int left, std::uint8_t* codes) {
  for (int part = 0; part < 8; ++part) {
    const Bytes pairs = from + part / 4 * 32;
    const int right = part % 4 * 2;
    for (int l = 0; l < 32; ++l) codes[part * 32 + l] |= ByteOf((pairs[l] >> right & 3) << left);
  }
}

void ReadQ2_K(Bytes from, WeightBlock* block) {
  for (int g = 0; g < 16; ++g) {
    block->group_scales[g] = static_cast<std::int8_t>(Low(from[g]));
    block->group_less[g] = High(from[g]);
  }
  block->scale = Word16(from + 80);
  block->less = Word16(from + 82);
  block->codes = {};
  AddTwoBits(from + 16, 0, block->codes.data());
}

void ReadQ3_K(Bytes from, WeightBlock* block) {
  const Bytes packed = from + 96;  // 16 scales of six bits: four of them, then two.
  for (int g = 0; g < 16; ++g) {
    const int low = g < 8 ? Low(packed[g]) : High(packed[g - 8]);
    const int top = packed[8 + g % 4] >> (g / 4 * 2) & 3;
    block->group_scales[g] = static_cast<std::int8_t>((low | top << 4) - 32);
  }
  block->scale = Word16(from + 108);
  block->codes = {};
  AddBits(from, 2, block->codes.data());
  AddTwoBits(from + 32, 0, block->codes.data());
}

// The eight scales of six bits of a Q4_K or Q5_K block, and the eight of what the values are less.
void SixBitScales(Bytes from, WeightBlock* block) {
  block->scale = Word16(from);
  block->less = Word16(from + 2);
  const Bytes packed = from + 4;
  for (int g = 0; g < 4; ++g) {
    block->group_scales[g] = static_cast<std::int8_t>(packed[g] & 63);
    block->group_less[g] = packed[g + 4] & 63;
  }
  for (int g = 4; g < 8; ++g) {
    const int scale = Low(packed[g + 4]) | packed[g - 4] >> 6 << 4;
    block->group_scales[g] = static_cast<std::int8_t>(scale);
    block->group_less[g] = ByteOf(High(packed[g + 4]) | packed[g] >> 6 << 4);
  }
}

// Groups of 32, two of which share 32 bytes.
void NibblesOfPairs(Bytes from, std::uint8_t* codes) {
  for (int pair = 0; pair < 4; ++pair) {
    for (int l = 0; l < 32; ++l) codes[pair * 64 + l] = Low(from[pair * 32 + l]);
    for (int l = 0; l < 32; ++l) codes[pair * 64 + 32 + l] = High(from[pair * 32 + l]);
  }
}

void ReadQ4_K(Bytes from, WeightBlock* block) {
  SixBitScales(from, block);
  NibblesOfPairs(from + 16, block->codes.data());
}

void ReadQ5_K(Bytes from, WeightBlock* block) {
  SixBitScales(from, block);
  NibblesOfPairs(from + 48, block->codes.data());
  AddBits(from + 16, 4, block->codes.data());
}

void ReadQ6_K(Bytes from, WeightBlock* block) {
  block->scale = Word16(from + 208);
  for (int g = 0; g < 16; ++g) block->group_scales[g] = static_cast<std::int8_t>(from[192 + g]);
  for (int half = 0; half < 2; ++half) {
    for (int l = 0; l < 64; ++l) {
      block->codes[half * 128 + l] = Low(from[half * 64 + l]);
      block->codes[half * 128 + 64 + l] = High(from[half * 64 + l]);
    }
  }
  AddTwoBits(from + 128, 4, block->codes.data());
}

void ReadIQ4_XS(Bytes from, WeightBlock* block) {
  block->scale = Word16(from);
  const int tops = Word16(from + 2);
  for (int g = 0; g < 8; ++g) {
    const int low = g % 2 == 0 ? Low(from[4 + g / 2]) : High(from[4 + g / 2]);
    block->group_scales[g] = static_cast<std::int8_t>((low | (tops >> (2 * g) & 3) << 4) - 32);
    Nibbles(from + 8 + g * 16, block->codes.data() + std::size_t{32} * g);
  }
}

void ReadMXFP4(Bytes from, WeightBlock* block) {
  block->scale = from[0];
  Nibbles(from + 1, block->codes.data());
}

// 2^(exponent - 128); the two smallest are below what a float's exponent can say.
float HalfPower(std::uint32_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000U << exponent : (exponent - 1) << 23);
}

using BlockReader = void (*)(Bytes from, WeightBlock* block);
constexpr std::array<BlockReader, kWeightFormats> kReaders = {
    nullptr,  nullptr,  nullptr,  ReadQ8_0, ReadQ4_0, ReadQ4_1, ReadQ5_0,   ReadQ5_1,
    ReadQ2_K, ReadQ3_K, ReadQ4_K, ReadQ5_K, ReadQ6_K, ReadQ4_0, ReadIQ4_XS, ReadMXFP4};

}  // namespace

void UnpackBlock(WeightFormat format, const std::byte* data, WeightBlock* block) {
  FT_CHECK(IsQuantized(format));
  if (InfoOf(format).block_elements == CodesOf(format).group) {
    block->group_scales[0] = 1;
    block->group_less[0] = 1;
  }
  kReaders[static_cast<std::size_t>(format)](reinterpret_cast<Bytes>(data), block);
}

float ScaleOf(WeightFormat format, const WeightBlock& block, int group) {
  if (format == WeightFormat::kMXFP4) return HalfPower(block.scale);
  return HalfToFloat(block.scale) * static_cast<float>(block.group_scales[group]);
}

float LessOf(WeightFormat format, const WeightBlock& block, int group) {
  if (!CodesOf(format).has_less) return 0;
  return HalfToFloat(block.less) * static_cast<float>(block.group_less[group]);
}

float* WriteElements(WeightFormat format, const WeightBlock& block, float* out) {
  const WeightCodes& meaning = CodesOf(format);
  const int elements = InfoOf(format).block_elements;
  for (int begin = 0; begin < elements; begin += meaning.group) {
    const float scale = ScaleOf(format, block, begin / meaning.group);
    const float less = LessOf(format, block, begin / meaning.group);
    for (int i = begin; i < begin + meaning.group; ++i) {
      const float value = scale * static_cast<float>(ValueOf(meaning, block.codes[i]));
      *out++ = meaning.has_less ? value - less : value;
    }
  }
  return out;
}

}  // namespace foretoken
