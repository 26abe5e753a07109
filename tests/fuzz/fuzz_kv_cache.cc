// Drives the KV cache with random operations beside a naive model; stops at the first
// contradiction.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "core/kv/kv_cache_testing.h"

namespace {

std::uint64_t WeakHash(std::uint64_t parent, std::span<const foretoken::Token> tokens) {
  return (parent + std::uint64_t(tokens[0])) % 3;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  foretoken::KvRoom room{.blocks = input.ConsumeIntegralInRange<std::int64_t>(0, 24)};
  room.window = input.ConsumeIntegralInRange(0, 120);
  room.anchors = input.ConsumeIntegralInRange(0, 70);
  room.recent_parts = input.ConsumeIntegralInRange<std::int64_t>(0, room.blocks);
  const bool prefix_cache = input.ConsumeIntegralInRange(0, 7) != 0;
  const bool weak_hash = input.ConsumeBool();
  foretoken::KvCacheHarness harness(room, prefix_cache,
                                    weak_hash ? WeakHash : foretoken::HashBlock);
  while (input.remaining_bytes() > 0) {
    const std::string wrong = harness.Step([&input](std::uint32_t bound) {
      return input.ConsumeIntegralInRange<std::uint32_t>(0, bound - 1);
    });
    FT_CHECK(wrong.empty(), "{}", wrong);
  }
  return 0;
}
