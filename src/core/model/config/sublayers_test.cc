#include "core/model/config/sublayers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/model.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

ModelConfig SixLayers() {
  return LlamaConfig({.hidden = 32,
                      .intermediate = 64,
                      .layers = 6,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = 8,
                      .vocabulary = 100,
                      .max_positions = 64});
}

TEST(Sublayers, ListsAreReadAndWrittenInOneSpelling) {
  for (const char* text : {"m3,a1,a2,a3", "a1-a3,m3", "a1-3,m3-3,a2"}) {
    const auto skipped = ParseSkippedSublayers(text, 6);
    ASSERT_TRUE(skipped.ok()) << skipped.error().message;
    EXPECT_EQ(skipped->ToText(), "a1-a3,m3") << text;
    EXPECT_EQ(skipped->count(), 4);
    EXPECT_EQ(*ParseSkippedSublayers(skipped->ToText(), 6), *skipped);
  }
}

TEST(Sublayers, RefusesWhatIsNoList) {
  const auto refusal = [](const char* text) {
    const auto skipped = ParseSkippedSublayers(text, 6);
    return skipped.ok() ? std::string("read") : skipped.error().message;
  };
  for (const char* text : {"", "x3", "a", "3", "a3,", "a3m3", "a3-m4", "a1-", "a 3", "a-1"}) {
    EXPECT_THAT(refusal(text), HasSubstr("no list of sub-layers")) << text;
  }
  for (const char* text : {"a6", "m2-m6", "a4-a3"}) {
    EXPECT_THAT(refusal(text), HasSubstr("the model has layers 0 to 5")) << text;
  }
}

TEST(Sublayers, AnExitLeavesTheFirstLayers) {
  EXPECT_EQ(SkippedByExit(2, 6)->ToText(), "a2-a5,m2-m5");
  EXPECT_EQ(SkippedByExit(5, 6)->ToText(), "a5,m5");
  for (const int exit : {-1, 0, 6, 7}) {
    EXPECT_THAT(SkippedByExit(exit, 6).error().message, HasSubstr("from 1 to 5")) << exit;
  }
}

TEST(Sublayers, WhatIsLeftOutKeepsNothingAndCountsForNothing) {
  const ModelConfig whole = SixLayers();
  EXPECT_TRUE(IsWhole(whole));
  const auto part = Without(*ParseSkippedSublayers("a1,m1,m4", 6), whole);
  ASSERT_TRUE(part.ok());
  EXPECT_FALSE(IsWhole(*part));
  EXPECT_EQ(part->layer_count(), 6);
  EXPECT_EQ(KvShapeOf(*part, 1).layers[1], KvLayer());
  EXPECT_EQ(KvShapeOf(*part, 1).layers[4], KvShapeOf(whole, 1).layers[4]);

  // A model of fewer layers has as many parameters.
  ModelConfig first = whole;
  first.layers.resize(2);
  EXPECT_EQ(Without(*SkippedByExit(2, 6), whole)->parameters(), first.parameters());
}

TEST(Sublayers, RefusesSetsThatCannotBeComputed) {
  const ModelConfig whole = SixLayers();
  EXPECT_THAT(Without(*ParseSkippedSublayers("a0-a5", 6), whole).error().message,
              HasSubstr("leave fewer out"));
  ModelConfig shared = whole;
  shared.layers[4].attention.kv_from = 2;
  EXPECT_THAT(Without(*ParseSkippedSublayers("a2", 6), shared).error().message,
              HasSubstr("layer 4 reads its keys and values"));
  EXPECT_TRUE(Without(*ParseSkippedSublayers("a2,a4", 6), shared).ok());
  EXPECT_TRUE(Without(*SkippedByExit(1, 6), shared).ok());
}

}  // namespace
}  // namespace foretoken
