// Reads blocks of a quantised format from standard input, and writes their elements as float32:
// dequantize FORMAT BLOCKS.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tensor/weight_format.h"

int main(int argc, char** argv) {
  const auto format = argc == 3 ? foretoken::ParseWeightFormat(argv[1]) : std::nullopt;
  if (!format || !foretoken::IsQuantized(*format)) return 2;
  const auto blocks = static_cast<std::size_t>(std::atoll(argv[2]));
  const foretoken::WeightFormatInfo& info = foretoken::InfoOf(*format);
  std::vector<std::byte> data(blocks * info.block_bytes);
  std::vector<float> elements(blocks * static_cast<std::size_t>(info.block_elements));
  if (std::fread(data.data(), 1, data.size(), stdin) != data.size()) return 1;
  foretoken::Dequantize(*format, data.data(), static_cast<std::int64_t>(blocks), elements.data());
  const std::size_t written = std::fwrite(elements.data(), sizeof(float), elements.size(), stdout);
  return written == elements.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
