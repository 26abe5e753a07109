#include "core/tensor/tensor_view.h"

#include <cstring>

#include "core/tensor/half.h"

namespace foretoken {
namespace {

// Mapped files do not promise the alignment of their elements.
template <typename T>
T LoadUnaligned(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

void LoadElements(const TensorView& view, std::int64_t begin, std::int64_t count, float* out) {
  const std::byte* from = view.data + FormatBytes(view.format, begin);
  switch (view.format) {
    case WeightFormat::kF32:
      if (count > 0) std::memcpy(out, from, count * sizeof(float));
      return;
    case WeightFormat::kF16:
      for (std::int64_t i = 0; i < count; ++i) {
        out[i] = HalfToFloat(LoadUnaligned<std::uint16_t>(from + 2 * i));
      }
      return;
    case WeightFormat::kBF16:
      for (std::int64_t i = 0; i < count; ++i) {
        out[i] = BFloat16ToFloat(LoadUnaligned<BFloat16>(from + 2 * i));
      }
      return;
    default:
      Dequantize(view.format, from, count / InfoOf(view.format).block_elements, out);
  }
}

}  // namespace foretoken
