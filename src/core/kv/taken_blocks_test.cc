#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/backend/testing/reference_backend.h"
#include "core/kv/kv_cache.h"

namespace foretoken {
namespace {

// Blocks are cleared where they are taken, not where they are given back: a window passes them, a
// prompt is cancelled while it is read, a proposal is rejected.
TEST(KvCache, ClearsBlocksThatAreTaken) {
  KvCache cache({.blocks = 8, .window = 32, .recent_parts = 4}, true);
  const auto backend = MakeReferenceBackend(Precision::kF32);
  KvStore store = AllocateKv({.layers = {{.kv_heads = 2, .head_dim = 3},
                                         {.kv_heads = 1, .head_dim = 5, .windowed = true}}},
                             cache, backend.get());
  cache.ClearTakenBlocksIn(&store);
  const auto numbers = [](Buffer& buffer) {
    return std::span(buffer.as<float>(), buffer.bytes() / sizeof(float));
  };
  for (Buffer* buffer : {&store.keys, &store.values}) {
    std::ranges::fill(numbers(*buffer), std::nanf(""));
  }
  const auto nans = [&](Buffer& buffer) {
    return std::ranges::count_if(numbers(buffer), [](float number) { return std::isnan(number); });
  };
  const auto expect_nans = [&](std::int64_t blocks, std::int64_t recent) {
    const std::int64_t expected = kBlockSize * (blocks * 2 * 3 + recent * 5);
    EXPECT_EQ(nans(store.keys), expected);
    EXPECT_EQ(nans(store.values), expected);
  };
  expect_nans(8, 4);
  SequenceKv one;
  ASSERT_TRUE(cache.Reserve(40, &one));
  expect_nans(6, 2);
  SequenceKv other;
  ASSERT_TRUE(cache.Reserve(64, &other));
  expect_nans(4, 0);
  // Recent parts that were passed are cleared for those who take them; what was read is not.
  one.committed = 40;
  numbers(store.keys)[one.blocks[0] * kBlockSize * 2 * 3] = 7;
  cache.Release(&other);
  for (const std::int32_t length : {70, 100}) {
    ASSERT_TRUE(cache.Reserve(length, &one));
    one.committed = length;
  }
  EXPECT_EQ(numbers(store.keys)[one.blocks[0] * kBlockSize * 2 * 3], 7);
}

}  // namespace
}  // namespace foretoken
