#include "core/weights/arrange/mxfp4_pairs.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/text/printable.h"

namespace foretoken {
namespace {

constexpr std::string_view kBlocks = "_blocks";
constexpr std::string_view kScales = "_scales";
constexpr std::size_t kHalf = 16;  // Elements of half a block; bytes of a block's elements.

// Blocks as GGUF files have them: a scale, then bytes of which the low halves are the first 16
// elements and the high ones the others.
std::vector<std::byte> MakeBlocks(std::span<const std::byte> pairs,
                                  std::span<const std::byte> scales) {
  constexpr std::byte kLow{0x0F};
  std::vector<std::byte> made(pairs.size() + scales.size());
  std::byte* to = made.data();
  const std::byte* first = pairs.data();
  for (const std::byte scale : scales) {
    const std::byte* const second = first + kHalf / 2;
    *to++ = scale;
    for (std::size_t i = 0; i < kHalf / 2; ++i) {
      *to++ = (first[i] & kLow) | (second[i] & kLow) << 4;
      *to++ = first[i] >> 4 | (second[i] & ~kLow);
    }
    first += kHalf;
  }
  return made;
}

}  // namespace

Status ArrangePairs(const ByteTensorMap& bytes, Checkpoint* checkpoint) {
  const auto refuse = [&](const std::string& name, const std::string& what) {
    return Invalid("{}: tensor '{}' has dtype U8, {}", checkpoint->path.string(), Printable(name),
                   what);
  };
  for (const auto& [name, blocks] : bytes) {
    const bool is_blocks = name.ends_with(kBlocks);
    if (!is_blocks && !name.ends_with(kScales)) {
      return refuse(name, "but only blocks of MXFP4 and their scales are supported of it");
    }
    const std::string stem = name.substr(0, name.size() - kBlocks.size());
    const auto scales = bytes.find(stem + std::string(is_blocks ? kScales : kBlocks));
    if (scales == bytes.end()) {
      return refuse(name, fmt::format("but there is no '{}{}'", Printable(stem),
                                      is_blocks ? kScales : kBlocks));
    }
    if (!is_blocks) continue;
    std::vector<std::int64_t> shape = scales->second.shape;
    std::vector<std::int64_t> wanted = shape;
    wanted.push_back(kHalf);
    constexpr auto kBlock = static_cast<std::int64_t>(2 * kHalf);
    if (shape.empty() || blocks.shape != wanted ||
        __builtin_mul_overflow(shape.back(), kBlock, &shape.back())) {
      return refuse(name, fmt::format("but not 16 for each of '{}{}'", Printable(stem), kScales));
    }
    if (checkpoint->tensors.contains(stem)) {
      return refuse(name, fmt::format("but there is a tensor '{}', too", Printable(stem)));
    }
    const std::span<const std::byte> pairs = blocks.data;
    const std::span<const std::byte> of_blocks = scales->second.data;
    checkpoint->tensors[stem] = {WeightFormat::kMXFP4, std::move(shape), nullptr};
    checkpoint->arranged[stem] = {{pairs, of_blocks},
                                  [pairs, of_blocks] { return MakeBlocks(pairs, of_blocks); }};
  }
  return {};
}

}  // namespace foretoken
