// Reads blocks of a format from standard input and writes their elements as float32, or the other
// way round: convert_blocks from|to FORMAT BLOCKS.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor/quantize.h"
#include "core/tensor/tensor_view.h"

int main(int argc, char** argv) {
  const auto format = argc == 4 ? foretoken::ParseWeightFormat(argv[2]) : std::nullopt;
  if (!format) return 2;
  const bool to = std::string_view(argv[1]) == "to";
  const std::int64_t count = std::atoll(argv[3]) * foretoken::InfoOf(*format).block_elements;
  std::vector<std::byte> data(foretoken::FormatBytes(*format, count));
  std::vector<float> elements(count);
  const auto of = [&](bool blocks) {
    return blocks ? std::as_writable_bytes(std::span(data))
                  : std::as_writable_bytes(std::span(elements));
  };
  if (std::fread(of(!to).data(), 1, of(!to).size(), stdin) != of(!to).size()) return 1;
  if (to) {
    if (!foretoken::CanStore(*format)) return 2;
    foretoken::StoreElements(*format, elements.data(), count, data.data());
  } else {
    foretoken::LoadElements({*format, {count}, data.data()}, 0, count, elements.data());
  }
  const std::size_t written = std::fwrite(of(to).data(), 1, of(to).size(), stdout);
  return written == of(to).size() && std::fflush(stdout) == 0 ? 0 : 1;
}
