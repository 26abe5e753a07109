#include "tensor/tensor_view.h"

#include <cstring>

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
  const std::byte* from = view.data + static_cast<std::size_t>(begin) * DTypeBytes(view.dtype);
  switch (view.dtype) {
    case DType::kF32:
      if (count > 0) std::memcpy(out, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < count; ++i) {
        out[i] = HalfToFloat(LoadUnaligned<std::uint16_t>(from + 2 * i));
      }
      return;
    case DType::kBF16:
      for (std::int64_t i = 0; i < count; ++i) {
        out[i] = BFloat16ToFloat(LoadUnaligned<BFloat16>(from + 2 * i));
      }
      return;
  }
}

}  // namespace foretoken
