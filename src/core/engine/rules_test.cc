#include "core/engine/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

constexpr Verification kNoise = Verification::kSharedNoise;

std::string FieldOf(const Status& status) { return status.ok() ? "none" : status.error().field; }
std::string FieldOf(const PlanOptions& options, const std::vector<Mode>& modes,
                    Verification verification = kNoise) {
  return FieldOf(CheckOptions(options, modes, verification));
}
std::string AppliedField(const PlanOptions& options) {
  const auto plan = ApplyOptions(options, DefaultPlan(options.lookahead.value_or(6)));
  return plan.ok() ? "none" : plan.error().field;
}

Fanout Given(std::vector<int> counts) {
  return {.rule = FanoutRule::kGiven, .counts = std::move(counts)};
}

TEST(PlanRules, OptionsThatSayNothingToAModeAreRefused) {
  const std::vector<Mode> plain = {Mode::kAr, Mode::kNgram};
  for (const Mode mode : {Mode::kSsd, Mode::kAuto}) {
    EXPECT_EQ(FieldOf({.fallback = Fallback::kNgram}, {mode}), "none");
    EXPECT_EQ(FieldOf({.fanout = Given({3})}, {mode}), "none");
    EXPECT_EQ(FieldOf({.saguaro_c = 0.5F}, {mode}, Verification::kRejection), "none");
  }
  EXPECT_EQ(FieldOf({.fallback = Fallback::kNgram}, plain), "fallback");
  EXPECT_EQ(FieldOf({.fanout = Given({3})}, plain), "fanout");
  EXPECT_EQ(FieldOf({.cache_budget = 9}, plain), "cache_budget");
  EXPECT_EQ(FieldOf({.saguaro_c = 0.5F}, {Mode::kSsd}), "saguaro_c");
  EXPECT_EQ(FieldOf({.cache_order = CacheOrder::kNoise}, plain, Verification::kRejection),
            "cache_order");
  EXPECT_EQ(FieldOf({.ssd_preset = SsdPreset::kPearl}, {Mode::kAuto}), "ssd_preset");
}

TEST(PlanRules, TreesAreForModesWhoseDrafterRanksTokens) {
  for (const Mode mode : kModes) {
    const bool ranks = NeedsDraft(mode);
    EXPECT_EQ(FieldOf({.tree_width = 3}, {mode}), ranks ? "none" : "tree_width") << ModeName(mode);
    EXPECT_EQ(FieldOf({.tree_width = 1}, {mode}), "none");
  }
}

TEST(PlanRules, ListsOfFanoutsNeedOneNumberANode) {
  EXPECT_EQ(FieldOf({.fanout = Given({1, 2, 3})}, {Mode::kAuto}), "fanout");
  EXPECT_EQ(AppliedField({.lookahead = 2, .fanout = Given({3, 2, 1})}), "none");
  EXPECT_EQ(AppliedField({.lookahead = 2, .fanout = Given({3, 2})}), "fanout");
  EXPECT_EQ(AppliedField({.lookahead = 1, .fanout = Given({0, 0})}), "fanout");
  EXPECT_EQ(AppliedField({.fanout = Given({kMaxFanout + 1})}), "fanout");
  EXPECT_EQ(AppliedField({.fanout_after_fallback = Fanout{.rule = FanoutRule::kUniform}}),
            "fanout_after_fallback");
}

TEST(PlanRules, BudgetsGoWithRulesAndHoldABranchANodeAtLeast) {
  const Fanout uniform{.rule = FanoutRule::kUniform};
  EXPECT_EQ(AppliedField({.lookahead = 3, .fanout = uniform, .cache_budget = 4}), "none");
  EXPECT_EQ(AppliedField({.lookahead = 3, .fanout = uniform, .cache_budget = 3}), "cache_budget");
  EXPECT_EQ(AppliedField({.lookahead = 3, .fanout = Given({2}), .cache_budget = 8}),
            "cache_budget");
}

TEST(PlanRules, TreesTakeFanoutsInNumbersAndOneFallback) {
  EXPECT_EQ(AppliedField({.tree_width = 2}), "none");
  EXPECT_EQ(AppliedField({.tree_width = 2, .fallback = Fallback::kAuto}), "tree_width");
  EXPECT_EQ(AppliedField({.tree_width = 2, .fanout = Fanout{.rule = FanoutRule::kPlanned}}),
            "tree_width");
  EXPECT_EQ(AppliedField({.tree_nodes = 9}), "tree_nodes");
}

TEST(PlanRules, AWindowFitsAProposalAndIsForModeLookahead) {
  constexpr Mode kLookahead{Schedule::kBefore, DrafterId::kLookahead};
  EXPECT_EQ(FieldOf({.lookahead_window = 4, .lookahead_guesses = 3}, {Mode::kAr, kLookahead}),
            "none");
  EXPECT_EQ(FieldOf({.lookahead_window = 4}, {Mode::kSsd, Mode::kNgram}), "lookahead_window");
  EXPECT_EQ(FieldOf({.lookahead_guesses = 4}, {Mode::kAuto}), "lookahead_guesses");
  EXPECT_EQ(FieldOf({.lookahead = 7}, {kLookahead}), "lookahead_window") << "(5 + 5) x 7";
  EXPECT_EQ(FieldOf({.lookahead = 7}, {Mode::kNgram}), "none");
  EXPECT_EQ(FieldOf({.lookahead = 7, .lookahead_window = 6, .lookahead_guesses = 3}, {kLookahead}),
            "none");
  EXPECT_EQ(AppliedField({.lookahead_window = 0}), "lookahead_window");
  EXPECT_EQ(AppliedField({.lookahead_guesses = kMaxProposal}), "lookahead_guesses");
  const auto plan =
      ApplyOptions({.mode = kLookahead, .lookahead = 3, .lookahead_window = 8}, DefaultPlan(6));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->nodes(), (8 + 5) * 3);
  const RequestBounds bounds{
      .offered = {kLookahead}, .max_lookahead = 16, .max_nodes = 63, .max_cache_budget = 51};
  EXPECT_EQ(FieldOf(CheckPlan(*plan, bounds)), "none");
  const SpeculationPlan large{.mode = kLookahead, .lookahead = 7};
  EXPECT_EQ(FieldOf(CheckPlan(CompletePlan(large), bounds)), "lookahead_window");
}

TEST(PlanRules, AChangeOfLookaheadKeepsTheWidthOfTheCache) {
  const auto base =
      ApplyOptions({.mode = Mode::kSsd, .lookahead = 4, .fanout = Given({5})}, DefaultPlan(4));
  ASSERT_TRUE(base.ok());
  const auto longer = ApplyOptions({.lookahead = 7}, *base);
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->primary, UniformFanout(5, 7));
  EXPECT_EQ(longer->after_fallback, longer->primary);
  EXPECT_EQ(longer->mode, Mode::kSsd);
}

TEST(PlanRules, ErrorsSpellFieldsAsTheirReaderDoes) {
  const auto spelled = ApplyOptions({.lookahead = 99}, DefaultPlan(4), [](std::string_view field) {
    return "--" + std::string(field);
  });
  ASSERT_FALSE(spelled.ok());
  EXPECT_THAT(spelled.error().message, HasSubstr("--lookahead"));
  EXPECT_EQ(spelled.error().field, "lookahead");
}

TEST(PlanRules, AnEngineFollowsWhatItOffersWithinItsBounds) {
  const std::vector<Mode> offered = {Mode::kAr, Mode::kNgram, Mode::kSssd, Mode::kSsd};
  const RequestBounds bounds{
      .offered = offered, .max_lookahead = 6, .max_nodes = 8, .max_cache_budget = 21};
  const auto field = [&](SpeculationPlan plan) {
    return FieldOf(CheckPlan(CompletePlan(std::move(plan)), bounds));
  };
  EXPECT_EQ(field({.mode = Mode::kAr, .lookahead = 0}), "none");
  EXPECT_EQ(field({.mode = Mode::kSsd, .lookahead = 6}), "none");
  EXPECT_EQ(field({.mode = Mode::kSd}), "mode");
  EXPECT_EQ(field({.mode = {Schedule::kDuring, DrafterId::kNgram}}), "mode");
  EXPECT_EQ(field({.mode = Mode::kNgram, .lookahead = 0}), "lookahead");
  EXPECT_EQ(field({.mode = Mode::kNgram, .lookahead = 7}), "lookahead");
  EXPECT_EQ(field({.mode = Mode::kSsd, .lookahead = 3, .tree_width = 2}), "tree_width");
  EXPECT_EQ(field({.mode = Mode::kSssd, .speculation_length = 0}), "speculation_length");
  EXPECT_EQ(field({.mode = Mode::kSsd, .saguaro_c = 1.5F}), "saguaro_c");
  EXPECT_EQ(field({.mode = Mode::kSsd, .fanout = FanoutRule::kPlanned}), "fanout");
  EXPECT_EQ(field({.mode = Mode::kSsd, .fallback = Fallback::kAuto}), "fallback");
  EXPECT_EQ(field({.mode = Mode::kSsd, .primary = UniformFanout(3, 2)}), "fanout");
  EXPECT_EQ(field({.mode = Mode::kSsd, .primary = UniformFanout(4, 6)}), "fanout");
  RequestBounds wide = bounds;
  wide.max_nodes = kMaxAutoSpeculationLength - 1;
  const SpeculationPlan open{.mode = Mode::kSssd, .speculation_length = kAutoSpeculationLength};
  EXPECT_EQ(FieldOf(CheckPlan(CompletePlan(open), wide)), "speculation_length");
  wide.knows_row_times = true;
  EXPECT_EQ(FieldOf(CheckPlan(CompletePlan(open), wide)), "none");
}

TEST(PlanRules, ATreeWithoutASizeTakesWhatFits) {
  const RequestBounds bounds{
      .offered = {Mode::kSd}, .max_lookahead = 16, .max_nodes = 16, .max_cache_budget = 51};
  const auto fitted = [&](const PlanOptions& options) {
    const auto plan = ApplyOptions(options, DefaultPlan(6));
    EXPECT_TRUE(plan.ok());
    return FitTree(*plan, bounds);
  };
  const SpeculationPlan tree = fitted({.mode = Mode::kSd, .tree_width = 3});
  EXPECT_EQ(tree.nodes(), 16);
  EXPECT_EQ(FieldOf(CheckPlan(tree, bounds)), "none");
  EXPECT_EQ(fitted({.mode = Mode::kSd, .tree_width = 3, .tree_nodes = 9}).nodes(), 9);
  // What was asked for in so many words is refused, not cut.
  EXPECT_EQ(
      FieldOf(CheckPlan(fitted({.mode = Mode::kSd, .tree_width = 3, .tree_nodes = 17}), bounds)),
      "tree_width");
  EXPECT_EQ(fitted({.mode = Mode::kSd, .lookahead = 5}),
            *ApplyOptions({.mode = Mode::kSd, .lookahead = 5}, DefaultPlan(6)));
  RequestBounds roomy = bounds;
  roomy.max_nodes = kMaxProposal;
  EXPECT_EQ(FitTree(*ApplyOptions({.tree_width = 2}, DefaultPlan(6)), roomy).nodes(),
            kDefaultTreeNodes);
}

TEST(PlanRules, PresetsLeaveThePlannerNothing) {
  EXPECT_FALSE(PlannerSettingsFor({.ssd_preset = SsdPreset::kAmusd}, DefaultPlan(4)).has_value());
  const auto settings = PlannerSettingsFor(
      {.lookahead = 5, .fallback = Fallback::kNgram, .fanout = Given({2})}, DefaultPlan(5));
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->limits.max_lookahead, 5);
  ASSERT_EQ(settings->limits.fallbacks.size(), 1U);
  EXPECT_EQ(settings->limits.fallbacks[0], Fallback::kNgram);
  EXPECT_EQ(settings->fanout, FanoutRule::kUniform);
}

const RequestBounds kBounds{.vocabulary = 16, .max_context = 8, .has_tokenizer = true};

Request Good() {
  Request request;
  request.prompt = {1, 2, 15};
  return request;
}

TEST(RequestRules, ARequestThatFitsMayRun) {
  EXPECT_TRUE(CheckRequest(Good(), kBounds).ok());
  Request longest = Good();
  longest.prompt.assign(7, 3);
  longest.stop.stop_strings.assign(128, "x");
  EXPECT_TRUE(CheckRequest(longest, kBounds).ok());
  Request scored = Good();
  scored.stop.max_tokens = 0;
  scored.prompt_logprobs = 0;
  EXPECT_TRUE(CheckRequest(scored, kBounds).ok());
  Request embedded = Good();
  embedded.stop.max_tokens = 0;
  embedded.embedding = Pooling::kMean;
  EXPECT_TRUE(CheckRequest(embedded, kBounds).ok());
}

TEST(RequestRules, WhatIsWrongIsNamedWithItsField) {
  struct Case {
    std::function<void(Request*)> spoil;
    const char* field;
    const char* sentence;
  };
  const Case cases[] = {
      {[](Request* r) { r->prompt.clear(); }, "prompt", "the prompt is empty"},
      {[](Request* r) { r->prompt[1] = 16; }, "prompt", "prompt token 1 is 16, outside"},
      {[](Request* r) { r->prompt[2] = -1; }, "prompt", "prompt token 2 is -1, outside"},
      {[](Request* r) { r->prompt.assign(8, 1); }, "prompt", "8 tokens, but the context holds 8"},
      {[](Request* r) { r->stop.max_tokens = 0; }, "max_tokens", "at least 1, not 0"},
      {[](Request* r) {
         r->stop.max_tokens = -1;
         r->prompt_logprobs = 0;
       },
       "max_tokens", "at least 0, not -1"},
      {[](Request* r) { r->prompt_logprobs = kMaxTopLogprobs + 1; }, "prompt_logprobs",
       "from -1 to 100"},
      {[](Request* r) { r->embedding = Pooling::kLast; }, "max_tokens", "max tokens must be 0"},
      {[](Request* r) {
         r->embedding = Pooling::kLast;
         r->stop.max_tokens = 0;
         r->prompt_logprobs = 0;
       },
       "prompt_logprobs", "gives nothing else"},
      {[](Request* r) { r->adapter.index = 0; }, "lora", "adapter 0 was asked for"},
      {[](Request* r) { r->adapter.scale = std::numeric_limits<float>::infinity(); }, "lora",
       "scale is inf"},
      {[](Request* r) { r->stop.stop_strings.assign(129, "x"); }, "stop_strings", "at most 128"},
      {[](Request* r) {
         r->prediction = {1, 16};
       },
       "prediction", "prediction token 1 is 16"},
      {[](Request* r) {
         r->stop.stop_strings = {"a", ""};
       },
       "stop_strings", "is empty"},
  };
  for (const Case& wrong : cases) {
    Request request = Good();
    wrong.spoil(&request);
    const Status status = CheckRequest(request, kBounds);
    ASSERT_FALSE(status.ok()) << wrong.sentence;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidInput);
    EXPECT_EQ(status.error().field, wrong.field);
    EXPECT_THAT(status.error().message, HasSubstr(wrong.sentence));
  }
}

TEST(RequestRules, StopStringsNeedATokenizer) {
  Request request = Good();
  request.stop.stop_strings = {"end"};
  const Status status = CheckRequest(request, {.vocabulary = 16, .max_context = 8});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().field, "stop_strings");
}

ModelConfig Model256() {
  ModelConfig config;
  config.max_positions = 256;
  return config;
}

TEST(EngineConfig, WhatIsLeftOutFollowsFromPlanAndModel) {
  const EngineConfig config{.plan = {.mode = Mode::kSsd, .lookahead = 4}, .max_batch = 3};
  EXPECT_EQ(CompletePlan(config.plan).primary, UniformFanout(kDefaultFanout, 4));
  const EngineSizes sizes = SizesFor(config, Model256());
  EXPECT_EQ(sizes.lookahead, 4);
  EXPECT_EQ(sizes.nodes, 4);
  EXPECT_EQ(sizes.cache_budget, kDefaultFanout * 5);
  EXPECT_EQ(sizes.context, 256);
  // Room for every sequence's context, and the row that follows it.
  EXPECT_EQ(sizes.kv_tokens, BlocksFor(257) * kBlockSize * 3);
  EXPECT_TRUE(ValidateConfig(config, sizes).ok());
}

TEST(EngineConfig, RetrievalBesideTheDraftNeedsRoomForItsTrees) {
  EngineConfig config{
      .plan = {.mode = Mode::kAr, .lookahead = 2, .fallback = Fallback::kRetrieval}};
  EXPECT_EQ(SizesFor(config, Model256()).nodes, kMaxAutoSpeculationLength - 1);
  config.plan.fallback = Fallback::kNone;
  EXPECT_EQ(SizesFor(config, Model256()).nodes, 2);
}

TEST(EngineConfig, TheModelLimitsTheContext) {
  EXPECT_EQ(SizesFor({.max_context = 9999}, Model256()).context, 256);
  EXPECT_EQ(SizesFor({.max_context = 100}, Model256()).context, 100);
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
      {[](EngineConfig* c) { c->max_context = 0; }, "the context"},
      {[](EngineConfig* c) { c->max_context = 1; }, "the context"},
      {[](EngineConfig* c) { c->kv_tokens = kBlockSize; }, "KV slots cannot hold one sequence"},
  };
  const auto validate = [](const EngineConfig& config) {
    return ValidateConfig(config, SizesFor(config, Model256()));
  };
  for (const Case& wrong : cases) {
    EngineConfig config;
    ASSERT_TRUE(validate(config).ok());
    wrong.spoil(&config);
    const Status status = validate(config);
    ASSERT_FALSE(status.ok()) << wrong.sentence;
    EXPECT_THAT(status.error().message, HasSubstr(wrong.sentence));
  }
}

}  // namespace
}  // namespace foretoken
