#include "core/tensor/weight_format.h"

#include "core/tensor/weight_block.h"

namespace foretoken {

std::optional<WeightFormat> ParseWeightFormat(std::string_view name) {
  for (std::size_t i = 0; i < kWeightFormats; ++i) {
    if (kWeightFormatInfos[i].name == name) return static_cast<WeightFormat>(i);
  }
  return std::nullopt;
}

void Dequantize(WeightFormat format, const std::byte* data, std::int64_t blocks, float* out) {
  WeightBlock block;
  for (; blocks > 0; --blocks, data += InfoOf(format).block_bytes) {
    UnpackBlock(format, data, &block);
    out = WriteElements(format, block, out);
  }
}

}  // namespace foretoken
