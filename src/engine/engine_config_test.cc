#include "engine/engine_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "backend/batch_plan.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

ModelConfig Model256() {
  ModelConfig config;
  config.max_positions = 256;
  return config;
}

TEST(EngineConfig, WhatIsLeftOutFollowsFromPlanAndModel) {
  EngineConfig config{.plan = {.mode = Mode::kSsd, .lookahead = 4}, .max_batch = 3};
  config = CompleteOptions(config, Model256());
  EXPECT_EQ(config.plan.primary, UniformFanout(kDefaultFanout, 4));
  EXPECT_EQ(config.max_lookahead, 4);
  EXPECT_EQ(config.max_nodes, 4);
  EXPECT_EQ(config.max_cache_budget, kDefaultFanout * 5);
  EXPECT_EQ(config.max_context, 256);
  // Room for every sequence's context, and the row that follows it.
  EXPECT_EQ(config.kv_tokens, BlocksFor(257) * kBlockSize * 3);
  EXPECT_TRUE(ValidateOptions(config).ok());
}

TEST(EngineConfig, RetrievalBesideTheDraftNeedsRoomForItsTrees) {
  EngineConfig config{
      .plan = {.mode = Mode::kAr, .lookahead = 2, .fallback = Fallback::kRetrieval}};
  EXPECT_EQ(CompleteOptions(config, Model256()).max_nodes, kMaxAutoSpeculationLength - 1);
  config.plan.fallback = Fallback::kNone;
  EXPECT_EQ(CompleteOptions(config, Model256()).max_nodes, 2);
}

TEST(EngineConfig, TheModelLimitsTheContext) {
  EXPECT_EQ(CompleteOptions({.max_context = 9999}, Model256()).max_context, 256);
  EXPECT_EQ(CompleteOptions({.max_context = 100}, Model256()).max_context, 100);
}

TEST(EngineConfig, WhatNoEngineCanBeMadeWithIsRefused) {
  struct Case {
    std::function<void(EngineConfig*)> spoil;
    const char* sentence;
  };
  const Case cases[] = {
      {[](EngineConfig* c) { c->max_lookahead = kMaxProposal + 1; }, "the largest lookahead"},
      {[](EngineConfig* c) { c->max_nodes = kMaxProposal + 1; }, "the largest proposal"},
      {[](EngineConfig* c) { c->max_cache_budget = -1; }, "the largest cache budget"},
      {[](EngineConfig* c) { c->max_batch = 257; }, "the batch size"},
      {[](EngineConfig* c) { c->prefill_chunk = 0; }, "the prefill chunk"},
      {[](EngineConfig* c) { c->max_context = 1; }, "the context"},
      {[](EngineConfig* c) { c->kv_tokens = kBlockSize; }, "KV slots cannot hold one sequence"},
  };
  for (const Case& wrong : cases) {
    EngineConfig config = CompleteOptions({}, Model256());
    ASSERT_TRUE(ValidateOptions(config).ok());
    wrong.spoil(&config);
    const Status status = ValidateOptions(config);
    ASSERT_FALSE(status.ok()) << wrong.sentence;
    EXPECT_THAT(status.error().message, HasSubstr(wrong.sentence));
  }
}

}  // namespace
}  // namespace foretoken
