#include "apps/foretoken/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "base/files/temporary_testing.h"
#include "core/engine/rules.h"

namespace foretoken {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// As the engine completes it.
SpeculationPlan CompletedPlan(const EngineOptions& options) {
  return ApplyOptions(options.plan, DefaultPlan(options.plan.lookahead.value_or(6))).value();
}

// What the flags of a command line say.
SpeculationOptions Given(const std::string& flags) {
  CLI::App app;
  SpeculationOptions options;
  AddSpeculationOptions(&app, &options);
  app.parse(flags, false);
  return options;
}

TEST(Options, TreesAndPresetsBecomePlans) {
  SpeculationOptions trees = Given("--lookahead 5 --tree-width 3 --tree-nodes 20");
  const auto options = trees.ToEngineOptions(1, 64);
  ASSERT_TRUE(options.ok());
  const SpeculationPlan tree = CompletedPlan(*options);
  EXPECT_EQ(tree.tree_width, 3);
  EXPECT_EQ(tree.nodes(), 20);
  EXPECT_EQ(tree.primary, EvenFanout(18, 5));

  trees.plan.tree_width = 1;
  EXPECT_EQ(trees.ToEngineOptions(1, 64).error().message,
            "--tree-nodes is for trees: give --tree-width 2 or more as well");

  const auto pearl = Given("-k 4 --ssd-preset pearl").ToEngineOptions(2, 64);
  ASSERT_TRUE(pearl.ok());
  EXPECT_EQ(CompletedPlan(*pearl).lookahead, 4);
  EXPECT_EQ(CompletedPlan(*pearl).primary.budget(), 1);
  EXPECT_EQ(pearl->max_batch, 2);
}

TEST(Options, ParseAsUsersOfOtherEnginesWriteThem) {
  CLI::App app;
  ModelOptions model;
  SpeculationOptions speculation;
  GenerationOptions generation;
  std::string prompt;
  app.add_option("prompt", prompt);
  AddModelOptions(&app, &model);
  AddSpeculationOptions(&app, &speculation);
  AddMemoryOptions(&app, &model, &speculation);
  AddSamplingOptions(&app, &generation);
  AddStopOptions(&app, &generation);
  app.parse(
      "-m target --draft draft -n 8 --temp 0.7 --top-k 40 --presence-penalty -0.5 --draft-max 4 "
      "--logit-bias 3:-1.5 --logit-bias 4:inf --no-prefix-cache --stop END --stop STOP -c 256 "
      "words",
      false);
  EXPECT_EQ(model.target, "target");
  EXPECT_EQ(model.draft, "draft");
  EXPECT_EQ(prompt, "words");
  EXPECT_EQ(model.TargetSource().context, 256);
  EXPECT_EQ(model.DraftSource().context, 256);
  EXPECT_EQ(speculation.plan.lookahead, 4);
  EXPECT_FALSE(speculation.prefix_cache);
  EXPECT_EQ(generation.stop.max_tokens, 8);
  EXPECT_THAT(generation.stop.stop_strings, ElementsAre("END", "STOP"));
  EXPECT_FLOAT_EQ(generation.sampling.temperature, 0.7F);
  EXPECT_EQ(generation.sampling.top_k, 40);
  EXPECT_FLOAT_EQ(generation.sampling.presence_penalty, -0.5F);
  ASSERT_TRUE(generation.Finish().ok());
  EXPECT_THAT(generation.sampling.logit_bias, Contains(Pair(3, -1.5F)));
}

TEST(Options, ADraftMayBeTheTargetWithOtherWeights) {
  ModelOptions model{.target = "target", .draft = "self:q4_0", .weights = "q8_0"};
  ASSERT_TRUE(model.ResolveDefaults().ok());
  EXPECT_EQ(model.TargetSource().weights, "q8_0");
  EXPECT_EQ(model.DraftSource().path, "target");
  EXPECT_EQ(model.DraftSource().weights, "q4_0");
  EXPECT_TRUE(model.ResolveDefaults().ok()) << "again";

  ModelOptions twice{.target = "target", .draft = "self:q4_0", .draft_weights = "q8_0"};
  EXPECT_FALSE(twice.ResolveDefaults().ok());
  ModelOptions random{.draft = "self:q4_0", .synthetic = "llama-135m"};
  EXPECT_FALSE(random.ResolveDefaults().ok());
  ModelOptions shape{.synthetic = "llama-135m", .weights = "q4_0"};
  EXPECT_FALSE(shape.ResolveDefaults().ok());
}

TEST(Options, ADraftMaySeeTheLastAndTheFirstPositionsOnly) {
  const auto seen = [](const std::string& options) {
    CLI::App app;
    ModelOptions model;
    SpeculationOptions speculation;
    AddMemoryOptions(&app, &model, &speculation);
    app.parse(options, false);
    EXPECT_EQ(model.ResolveDefaults().ok(), options.find("window") != std::string::npos);
    const auto window = model.SeenByDraft();
    return window ? std::pair(window->positions, window->anchors) : std::pair(-1, -1);
  };
  EXPECT_EQ(seen("--draft-window 64"), std::pair(64, 4));
  EXPECT_EQ(seen("--draft-window 64 --draft-anchors 0"), std::pair(64, 0));
  EXPECT_EQ(seen("--draft-anchors 33 --draft-window 1"), std::pair(1, 33));
  EXPECT_EQ(seen("--draft-anchors 4"), std::pair(-1, -1));
  for (const char* nonsense :
       {"--draft-window 0", "--draft-window 8 --draft-anchors -1", "--draft-anchors 1.5"}) {
    EXPECT_THROW(seen(nonsense), CLI::ValidationError) << nonsense;
  }
}

TEST(Options, ADraftMaySayTheMostFrequentTokensOnly) {
  const auto resolved = [](const std::string& text, const std::string& datastore = "") {
    ModelOptions model{.target = "target", .draft = "draft", .draft_vocab = text};
    const Status status = model.ResolveDefaults(datastore);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return model.DraftSource();
  };
  EXPECT_TRUE(resolved("").draft_vocabulary.whole());
  EXPECT_EQ(resolved("a/words.txt").draft_vocabulary.ranking, "a/words.txt");
  EXPECT_EQ(resolved("a/words.txt").label(), "draft[words.txt]");
  EXPECT_EQ(resolved("a/words.txt:500").draft_vocabulary.ranking, "a/words.txt");
  EXPECT_EQ(resolved("a/words.txt:500").draft_vocabulary.most, 500);
  EXPECT_EQ(resolved("a/words.txt:500").label(), "draft[500]");
  EXPECT_EQ(resolved("b:words").draft_vocabulary.ranking, "b:words");

  TemporaryFolder store;
  ModelOptions unranked{.target = "target", .draft = "draft", .draft_vocab = "500"};
  EXPECT_THAT(unranked.ResolveDefaults(store.path().string()).error().message,
              HasSubstr("`foretoken datastore rank -d DIR` finds it out"));
  store.Write("token-ranking.txt", "");
  const ModelSource ranked = resolved("500", store.path().string());
  EXPECT_EQ(ranked.draft_vocabulary.ranking, RankingPath(store.path()).string());
  EXPECT_EQ(ranked.draft_vocabulary.most, 500);

  ModelOptions random{.synthetic = "llama-1b", .draft_synthetic = "draft-111m"};
  random.draft_vocab = "500";
  ASSERT_TRUE(random.ResolveDefaults().ok());
  EXPECT_EQ(random.DraftSource().label(), "draft-111m[500]");
  random.draft_vocab = "0";
  EXPECT_FALSE(random.ResolveDefaults().ok());
  ModelOptions alone{.target = "target", .draft_vocab = "words.txt"};
  EXPECT_THAT(alone.ResolveDefaults().error().message, HasSubstr("there is no draft"));
}

template <typename Items>
auto Listed(const Items& items) {
  return std::vector(items.begin(), items.end());
}

SpeculationPlan PlanOf(const std::string& flags) {
  const auto made = Given(flags).ToEngineOptions(1, 64);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? CompletedPlan(*made) : SpeculationPlan{};
}

std::string RefusalOf(const std::string& flags) {
  const auto made = Given(flags).ToEngineOptions(1, 64);
  return made.ok() ? std::string("accepted") : made.error().message;
}

TEST(Options, Fanouts) {
  EXPECT_EQ(ParseFanout("geometric")->rule, FanoutRule::kGeometric);
  EXPECT_EQ(ParseFanout("planned")->rule, FanoutRule::kPlanned);
  EXPECT_EQ(ParseFanout("uniform")->rule, FanoutRule::kUniform);
  EXPECT_THAT(ParseFanout("uniform:4")->counts, ElementsAre(4));
  EXPECT_THAT(ParseFanout("4,0,2")->counts, ElementsAre(4, 0, 2));
  for (const char* text :
       {"", "0", "16", "uniform:0", "uniform:1,2", "3,x", "1,16", "flat", "uniform:"}) {
    EXPECT_THAT(ParseFanout(text).error().message, HasSubstr("is not a fan-out")) << text;
  }
}

TEST(Options, FanoutsBecomeShapes) {
  EXPECT_EQ(PlanOf("--lookahead 4").primary, EvenFanout(15, 4));
  EXPECT_EQ(PlanOf("--lookahead 4 --fanout uniform:2").primary, UniformFanout(2, 4));
  EXPECT_EQ(PlanOf("--lookahead 4 --cache-budget 12").primary, EvenFanout(12, 4));
  const SpeculationPlan listed = PlanOf("--lookahead 2 --fanout 4,2,1 --fanout-after-fallback 2");
  EXPECT_THAT(Listed(listed.primary.at), ElementsAre(4, 2, 1));
  EXPECT_EQ(listed.after_fallback, UniformFanout(2, 2));
  EXPECT_FALSE(listed.open());
  const SpeculationPlan planned =
      PlanOf("--lookahead 4 --fanout planned --cache-budget 20 --fallback auto");
  EXPECT_EQ(planned.primary.budget(), 20);
  EXPECT_EQ(planned.fanout, FanoutRule::kPlanned);
  EXPECT_EQ(planned.fallback, Fallback::kAuto);
}

TEST(Options, NonsenseFanoutsAreRefused) {
  EXPECT_THAT(RefusalOf("--lookahead 6 --cache-budget 6"),
              HasSubstr("--cache-budget 6 does not go with K = 6"));
  EXPECT_THAT(RefusalOf("--lookahead 1 --cache-budget 31"), HasSubstr("2 to 30 in all"));
  EXPECT_THAT(RefusalOf("--fanout uniform:3 --cache-budget 20"),
              HasSubstr("says how large the cache is"));
  EXPECT_THAT(RefusalOf("--lookahead 6 --fanout 3,2"), HasSubstr("has 7 outcome nodes"));
  EXPECT_THAT(RefusalOf("--lookahead 1 --fanout 0,0"), HasSubstr("prepares nothing"));
  EXPECT_THAT(RefusalOf("--fanout planned --fanout-after-fallback 2"),
              HasSubstr("shape both by themselves"));
  EXPECT_THAT(RefusalOf("--fanout planned --tree-width 2"), HasSubstr("are for chains"));
  EXPECT_THAT(RefusalOf("--fallback auto --tree-width 2"), HasSubstr("are for chains"));
}

TEST(Options, WhatModeAutoMayChooseFrom) {
  const auto options = Given("--lookahead 5 --fanout geometric --cache-budget 24 --fallback ngram")
                           .ToEngineOptions(1, 64);
  ASSERT_TRUE(options.ok());
  const PlannerSettings planner = *PlannerSettingsFor(options->plan, CompletedPlan(*options));
  EXPECT_EQ(planner.fanout, FanoutRule::kGeometric);
  EXPECT_EQ(planner.limits.max_lookahead, 5);
  EXPECT_EQ(planner.limits.cache_budget, 24);
  EXPECT_THAT(Listed(planner.limits.fallbacks), ElementsAre(Fallback::kNgram));
  const auto fixed = Given("--fanout 4").ToEngineOptions(1, 64);
  const auto settings = PlannerSettingsFor(fixed->plan, CompletedPlan(*fixed));
  EXPECT_EQ(settings->fanout, FanoutRule::kUniform);
  EXPECT_THAT(Listed(settings->limits.mean_fanouts), ElementsAre(4));
}

TEST(Options, AreRefusedWhereTheyWouldDoNothing) {
  const auto refusal = [](const SpeculationOptions& options, std::vector<Mode> modes) {
    const Status status = options.CheckFor(modes);
    return status.ok() ? std::string("accepted") : status.error().message;
  };
  SpeculationOptions saguaro = Given("--saguaro-c 0.5");
  EXPECT_THAT(refusal(saguaro, {Mode::kSsd}), HasSubstr("--saguaro-c needs --verify rejection"));
  saguaro.verification = "rejection";
  EXPECT_EQ(refusal(saguaro, {Mode::kSsd}), "accepted");
  EXPECT_EQ(refusal(saguaro, {Mode::kAr, Mode::kAuto}), "accepted");
  EXPECT_THAT(refusal(saguaro, {Mode::kSd}), HasSubstr("mode ssd or auto"));
  const SpeculationOptions window = Given("--lookahead-window 6");
  EXPECT_THAT(refusal(window, {Mode::kNgram}),
              HasSubstr("--lookahead-window is for mode lookahead"));
  const Mode lookahead{Schedule::kBefore, DrafterId::kLookahead};
  EXPECT_THAT(refusal(window, {lookahead}),
              HasSubstr("(6 + 5) x 6 = 66 tokens, more than 63: give a smaller --lookahead-window, "
                        "--lookahead-guesses or --lookahead"));
  const std::string fits = "--lookahead-window 6 --lookahead-guesses 4";
  EXPECT_EQ(refusal(Given(fits), {lookahead}), "accepted");
  EXPECT_EQ(PlanOf(fits).window, 6);
  EXPECT_EQ(PlanOf(fits).guesses, 4);
  EXPECT_THAT(refusal(Given("--cache-order probability"), {Mode::kSsd}),
              HasSubstr("--cache-order needs"));
  for (const char* flags : {"--fanout 3", "--cache-budget 21", "--fallback none"}) {
    EXPECT_THAT(refusal(Given(flags), {Mode::kSd}), HasSubstr("speculation cache"));
    EXPECT_EQ(refusal(Given(flags), {Mode::kSsd}), "accepted");
  }
  EXPECT_THAT(refusal(Given("--fanout 3,2,1"), {Mode::kAuto}), HasSubstr("mode auto chooses K"));
  EXPECT_THAT(refusal(Given("--tree-width 3"), {Mode::kAuto}), HasSubstr("--tree-width is for"));
  EXPECT_EQ(refusal(Given("--tree-width 3"), {Mode::kAuto, Mode::kSd}), "accepted");
  EXPECT_THAT(refusal(Given("--ssd-preset pearl"), {Mode::kAuto}),
              HasSubstr("--ssd-preset is for"));
  SpeculationOptions stages;
  stages.stages = "draft,ngram";
  EXPECT_EQ(refusal(stages, {Mode::kSd}),
            "--stages says what mode staged is made of, and neither that nor auto is chosen");
  EXPECT_EQ(refusal(stages, {Mode::kAuto}), "accepted");
  EXPECT_EQ(refusal(stages, {Mode::kSd, {Schedule::kBefore, DrafterId::kStaged}}), "accepted");
}

TEST(Options, ListsOfDrafters) {
  EXPECT_THAT(*ParseDrafterIds("--stages", "draft, draft2,ngram"),
              ElementsAre(DrafterId::kModel, DrafterId::kModel2, DrafterId::kNgram));
  EXPECT_THAT(*ParseDrafterIds("--stages", ""), ElementsAre());
  EXPECT_THAT(ParseDrafterIds("--ensemble", "draft,drift").error().message,
              HasSubstr("--ensemble: 'drift' is no drafter: choose among draft, draft2"));
  EXPECT_FALSE(ParseDrafterIds("--ensemble", ",").ok());
}

TEST(Options, OutOfRangeIsRefused) {
  CLI::App app;
  SpeculationOptions speculation;
  AddSpeculationOptions(&app, &speculation);
  EXPECT_THROW(app.parse("--lookahead 0"), CLI::ValidationError);
  app.clear();
  EXPECT_THROW(app.parse("--fallback magic"), CLI::ValidationError);
  app.clear();
  EXPECT_THROW(app.parse("--speculation-length 1"), CLI::ValidationError);
  EXPECT_EQ(Given("--speculation-length knee").plan.speculation_length, kKneeSpeculationLength);
}

TEST(Options, LogitBias) {
  EXPECT_EQ(ParseLogitBias("42=0.25").value(), std::pair(42, 0.25F));
  for (const char* text : {"", "42", ":1", "a:1", "1:b", "1:2x"}) {
    EXPECT_FALSE(ParseLogitBias(text).ok()) << text;
  }
}

TEST(Options, Modes) {
  EXPECT_THAT(ParseModes("ssd, ar,ssd").value(), ElementsAre(Mode::kSsd, Mode::kAr));
  EXPECT_FALSE(ParseModes("").ok());
  EXPECT_FALSE(ParseModes("ar,warp").ok());
}

TEST(Cores, OpenSidesGetWhatIsLeft) {
  const int first = AvailablePhysicalCores().front();
  CoreOptions options;
  options.target = std::to_string(first);
  const auto cores = ResolveCores(options);
  ASSERT_TRUE(cores.ok()) << cores.error().message;
  EXPECT_THAT(cores->target, ElementsAre(first));
  EXPECT_FALSE(cores->draft.empty());
  EXPECT_THAT(cores->all, Contains(first));

  options.target.clear();
  options.target_count = 4000;
  EXPECT_THAT(ResolveCores(options).error().message, HasSubstr("--threads asks for 4000 cores"));
}

TEST(ChatTemplates, AreBuiltInOrFiles) {
  ChatTemplateOptions options;
  EXPECT_EQ(options.Read().value(), "");
  options.source = "chatml";
  EXPECT_EQ(options.Read().value(), *BuiltInChatTemplate("chatml"));
  const TemporaryFolder folder;
  folder.Write("own.jinja", "{{ 1 }}");
  folder.Write("empty.jinja", "");
  options.source = (folder.path() / "own.jinja").string();
  EXPECT_EQ(options.Read().value(), "{{ 1 }}");
  options.source = (folder.path() / "empty.jinja").string();
  EXPECT_THAT(options.Read().error().message, HasSubstr("is empty"));
  options.source = "chatmil";
  EXPECT_THAT(options.Read().error().message, HasSubstr("chatml, gemma"));
  options = {.source = "", .variables = "[1]"};
  EXPECT_THAT(options.Read().error().message, HasSubstr("takes a JSON object"));
}

TEST(Adapters, AreCalledAfterTheirFilesUnlessNamed) {
  const AdapterOptions options{.adapters = {"some/where/french/", "code.v2.gguf", "mine=a=b.gguf"},
                               .scale = 0.5F};
  const std::vector<AdapterSource> sources = options.Sources();
  ASSERT_EQ(sources.size(), 3U);
  EXPECT_EQ(sources[0].name, "french");
  EXPECT_EQ(sources[0].path, "some/where/french/");
  EXPECT_EQ(sources[0].scale, 0.5F);
  EXPECT_EQ(sources[1].name, "code.v2");
  EXPECT_EQ(sources[2].name, "mine");
  EXPECT_EQ(sources[2].path, "a=b.gguf");
}

TEST(Models, BundledPairIsTheDefault) {
  ModelOptions model;
  ASSERT_TRUE(model.ResolveDefaults().ok());
  EXPECT_EQ(model.TargetSource().label(), "demo-target");
  EXPECT_EQ(model.DraftSource().label(), "demo-draft");

  ModelOptions own;
  own.target = "somewhere/mine/";
  ASSERT_TRUE(own.ResolveDefaults().ok());
  EXPECT_FALSE(own.has_draft());  // The bundled draft suits the bundled target only.
  EXPECT_EQ(own.TargetSource().label(), "mine");
  own.target = "somewhere/mine.Q8_0.gguf";
  EXPECT_EQ(own.TargetSource().label(), "mine.Q8_0");

  own.synthetic = "llama-135m";
  EXPECT_FALSE(own.ResolveDefaults().ok());
}

}  // namespace
}  // namespace foretoken
