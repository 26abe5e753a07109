// The bytes of blocks: weight_block.cc, which reads them, the other way round.
#include <cstring>

#include "base/check.h"
#include "core/tensor/block_bytes.h"
#include "core/tensor/weight_block.h"

namespace foretoken {
namespace {

using PackedBytes = std::uint8_t*;
using Codes = const std::uint8_t*;

void PutWord16(std::uint16_t value, PackedBytes to) {
  to[0] = ByteOf(value & 0xFF);
  to[1] = ByteOf(value >> 8);
}

// The low four bits of 32 elements.
void PutNibbles(Codes codes, PackedBytes to) {
  for (int j = 0; j < 16; ++j) to[j] = ByteOf((codes[j] & 15) | codes[j + 16] << 4);
}

// The fifth bits of 32 elements, in four bytes.
void PutFifthBits(Codes codes, PackedBytes to) {
  for (int j = 0; j < 32; ++j) to[j / 8] |= ByteOf((codes[j] >> 4 & 1) << j % 8);
}

void PackQ8_0(const WeightBlock& block, PackedBytes to) {
  PutWord16(block.scale, to);
  for (int j = 0; j < 32; ++j) to[2 + j] = block.codes[j] ^ 0x80;
}

void PackQ4_0(const WeightBlock& block, PackedBytes to) {
  PutWord16(block.scale, to);
  PutNibbles(block.codes.data(), to + 2);
}

void PackQ4_1(const WeightBlock& block, PackedBytes to) {
  PutWord16(block.scale, to);
  PutWord16(block.less ^ kHalfSign, to + 2);
  PutNibbles(block.codes.data(), to + 4);
}

void PackQ5_0(const WeightBlock& block, PackedBytes to) {
  PutWord16(block.scale, to);
  PutFifthBits(block.codes.data(), to + 2);
  PutNibbles(block.codes.data(), to + 6);
}

void PackQ5_1(const WeightBlock& block, PackedBytes to) {
  PutWord16(block.scale, to);
  PutWord16(block.less ^ kHalfSign, to + 2);
  PutFifthBits(block.codes.data(), to + 4);
  PutNibbles(block.codes.data(), to + 8);
}

// Two bits of 256 elements, from bit `right` on.
void PutTwoBits(Codes codes, int right, PackedBytes to) {
  for (int part = 0; part < 8; ++part) {
    for (int l = 0; l < 32; ++l) {
      to[part / 4 * 32 + l] |= ByteOf((codes[part * 32 + l] >> right & 3) << part % 4 * 2);
    }
  }
}

// Bit `right` of 256 elements.
void PutBits(Codes codes, int right, PackedBytes to) {
  for (int group = 0; group < 8; ++group) {
    for (int l = 0; l < 32; ++l) to[l] |= ByteOf((codes[group * 32 + l] >> right & 1) << group);
  }
}

void PackQ2_K(const WeightBlock& block, PackedBytes to) {
  for (int g = 0; g < 16; ++g)
    to[g] = ByteOf((block.group_scales[g] & 15) | block.group_less[g] << 4);
  PutTwoBits(block.codes.data(), 0, to + 16);
  PutWord16(block.scale, to + 80);
  PutWord16(block.less, to + 82);
}

void PackQ3_K(const WeightBlock& block, PackedBytes to) {
  PutBits(block.codes.data(), 2, to);
  PutTwoBits(block.codes.data(), 0, to + 32);
  const PackedBytes packed = to + 96;
  for (int g = 0; g < 16; ++g) {
    const int scale = block.group_scales[g] + 32;
    packed[g % 8] |= ByteOf((scale & 15) << g / 8 * 4);
    packed[8 + g % 4] |= ByteOf(scale >> 4 << g / 4 * 2);
  }
  PutWord16(block.scale, to + 108);
}

void PutSixBitScales(const WeightBlock& block, PackedBytes to) {
  PutWord16(block.scale, to);
  PutWord16(block.less, to + 2);
  const PackedBytes packed = to + 4;
  for (int g = 0; g < 4; ++g) {
    packed[g] = ByteOf(block.group_scales[g] | block.group_scales[g + 4] >> 4 << 6);
    packed[g + 4] = ByteOf(block.group_less[g] | block.group_less[g + 4] >> 4 << 6);
    packed[g + 8] = ByteOf((block.group_scales[g + 4] & 15) | block.group_less[g + 4] << 4);
  }
}

void PutNibblesOfPairs(Codes codes, PackedBytes to) {
  for (int pair = 0; pair < 4; ++pair) {
    const Codes from = codes + pair * 64;
    for (int l = 0; l < 32; ++l) to[pair * 32 + l] = ByteOf((from[l] & 15) | from[32 + l] << 4);
  }
}

void PackQ4_K(const WeightBlock& block, PackedBytes to) {
  PutSixBitScales(block, to);
  PutNibblesOfPairs(block.codes.data(), to + 16);
}

void PackQ5_K(const WeightBlock& block, PackedBytes to) {
  PutSixBitScales(block, to);
  PutBits(block.codes.data(), 4, to + 16);
  PutNibblesOfPairs(block.codes.data(), to + 48);
}

void PackQ6_K(const WeightBlock& block, PackedBytes to) {
  for (int half = 0; half < 2; ++half) {
    const Codes from = block.codes.data() + half * 128;
    for (int l = 0; l < 64; ++l) to[half * 64 + l] = ByteOf((from[l] & 15) | from[64 + l] << 4);
  }
  PutTwoBits(block.codes.data(), 4, to + 128);
  for (int g = 0; g < 16; ++g) to[192 + g] = static_cast<std::uint8_t>(block.group_scales[g]);
  PutWord16(block.scale, to + 208);
}

void PackIQ4_XS(const WeightBlock& block, PackedBytes to) {
  PutWord16(block.scale, to);
  int tops = 0;
  for (int g = 0; g < 8; ++g) {
    const int scale = block.group_scales[g] + 32;
    tops |= scale >> 4 << (2 * g);
    to[4 + g / 2] |= ByteOf((scale & 15) << g % 2 * 4);
    PutNibbles(block.codes.data() + std::size_t{32} * g, to + 8 + g * 16);
  }
  PutWord16(static_cast<std::uint16_t>(tops), to + 2);
}

void PackMXFP4(const WeightBlock& block, PackedBytes to) {
  to[0] = ByteOf(block.scale);
  PutNibbles(block.codes.data(), to + 1);
}

using BlockWriter = void (*)(const WeightBlock& block, PackedBytes to);
constexpr std::array<BlockWriter, kWeightFormats> kWriters = {
    nullptr,  nullptr,  nullptr,  PackQ8_0, PackQ4_0, PackQ4_1, PackQ5_0,   PackQ5_1,
    PackQ2_K, PackQ3_K, PackQ4_K, PackQ5_K, PackQ6_K, PackQ4_0, PackIQ4_XS, PackMXFP4};

}  // namespace

void PackBlock(WeightFormat format, const WeightBlock& block, std::byte* data) {
  FT_CHECK(IsQuantized(format));
  std::memset(data, 0, InfoOf(format).block_bytes);
  kWriters[static_cast<std::size_t>(format)](block, reinterpret_cast<PackedBytes>(data));
}

}  // namespace foretoken
