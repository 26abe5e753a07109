#include "core/tensor/not_finite.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/tensor/weight_block.h"

namespace foretoken {
namespace {

constexpr std::uint16_t kHalfExponent = 0x7C00;

// Where a block has its scale, a half behind which stands what its values are less by.
constexpr std::array<std::size_t, kWeightFormats> kScalesAt = {0,  0,   0, 0, 0,   0, 0, 0,
                                                               80, 108, 0, 0, 208, 0, 0, 0};

// Whether any of `count` numbers has all bits of its exponent set, as infinities and NaN have. A
// loop that compilers turn into vectors: loading a model reads all of its weights here.
template <typename T>
bool AnyHas(T exponent, const std::byte* from, std::int64_t count) {
  T found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    T bits;
    std::memcpy(&bits, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    found |= static_cast<T>((bits & exponent) == exponent);
  }
  return found != 0;
}

template <typename T>
std::int64_t FindNumber(T exponent, const std::byte* from, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kPiece = 4096;
  const auto at = [from](std::int64_t i) {
    return from + i * static_cast<std::int64_t>(sizeof(T));
  };
  for (; begin < end; begin += kPiece) {
    if (!AnyHas(exponent, at(begin), std::min(kPiece, end - begin))) continue;
    while (!AnyHas(exponent, at(begin), 1)) ++begin;
    return begin;
  }
  return -1;
}

// The scales of a block tell.
bool IsFiniteBlock(WeightFormat format, const std::byte* block) {
  if (format == WeightFormat::kMXFP4) return block[0] != std::byte{255};
  const std::byte* scales = block + kScalesAt[static_cast<std::size_t>(format)];
  return !AnyHas(kHalfExponent, scales, CodesOf(format).has_less ? 2 : 1);
}

}  // namespace

std::int64_t FindNotFinite(const TensorView& view, std::int64_t begin, std::int64_t end) {
  switch (view.format) {
    case WeightFormat::kF32:
      return FindNumber<std::uint32_t>(0x7F800000, view.data, begin, end);
    case WeightFormat::kF16:
      return FindNumber(kHalfExponent, view.data, begin, end);
    case WeightFormat::kBF16:
      return FindNumber<std::uint16_t>(0x7F80, view.data, begin, end);
    default:
      break;
  }
  const WeightFormatInfo& info = InfoOf(view.format);
  const std::byte* block = view.data + FormatBytes(view.format, begin);
  for (; begin < end; begin += info.block_elements) {
    if (!IsFiniteBlock(view.format, block)) return begin;
    block += info.block_bytes;
  }
  return -1;
}

}  // namespace foretoken
