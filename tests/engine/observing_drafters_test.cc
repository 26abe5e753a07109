// Drafters that learn from what the target says of their proposals: every one emits the tokens of
// AR, bit for bit, whatever it has learned from sequences before and beside.

#include <gtest/gtest.h>

#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

constexpr Mode kJacobiMode{Schedule::kBefore, DrafterId::kJacobi};
constexpr Mode kLookaheadMode{Schedule::kBefore, DrafterId::kLookahead};
constexpr Mode kRecycleMode{Schedule::kBefore, DrafterId::kRecycle};
constexpr Mode kRacerMode{Schedule::kBefore, DrafterId::kRacer};
constexpr StopRules kObservingStop{.max_tokens = 96};

SamplingParams At(float temperature) { return {.temperature = temperature, .seed = 11}; }

SamplingParams Shaped() {
  SamplingParams shaped{.temperature = 0.9F, .top_k = 40, .top_p = 0.9F, .seed = 5};
  shaped.repetition_penalty = 1.2F;
  shaped.presence_penalty = 0.2F;
  shaped.logit_bias = {{300, 2.0F}, {400, -5.0F}};
  return shaped;
}

const std::vector<SamplingParams>& ObservingSettings() {
  static const std::vector<SamplingParams> settings = {At(0), At(0.7F), At(1.3F), Shaped()};
  return settings;
}

// By setting and prompt.
const std::vector<std::vector<Token>>& ObservingTruth(std::size_t setting) {
  static std::map<std::size_t, std::vector<std::vector<Token>>> known;
  auto& truth = known[setting];
  if (truth.empty()) {
    const auto engine = Make(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, DraftOptions{});
    truth =
        TokensOf(Generate(*engine, StoryPrompts(), ObservingSettings()[setting], kObservingStop));
  }
  return truth;
}

SpeculationPlan Window(int window, int guesses, int lookahead) {
  return {.lookahead = lookahead, .window = window, .guesses = guesses};
}

struct ObservingCase {
  std::string name;
  Mode mode;
  EngineConfig options;
};

void PrintTo(const ObservingCase& test, std::ostream* out) { *out << test.name; }

class Observing : public testing::TestWithParam<ObservingCase> {};

TEST_P(Observing, EveryTokenEqualsAr) {
  const auto engine = Make(GetParam().mode, GetParam().options, DraftOptions{});
  for (std::size_t s = 0; s < ObservingSettings().size(); ++s) {
    int rounds = 0;
    int tokens = 0;
    const auto outputs = Generate(*engine, StoryPrompts(), ObservingSettings()[s], kObservingStop);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].tokens, ObservingTruth(s)[i]) << s << ", " << i;
      rounds += outputs[i].stats.rounds;
      tokens += outputs[i].stats.output_tokens;
    }
    EXPECT_LT(rounds, tokens) << "setting " << s << ": it never guesses right";
  }
}

TEST_P(Observing, AlsoWhereSequencesMakeRoomAndComeBack) {
  const auto engine = Make(GetParam().mode, GetParam().options, DraftOptions{});
  Collector collector;
  std::vector<SequenceId> ids;
  for (const auto& prompt : StoryPrompts()) {
    SamplingParams sampling = ObservingSettings()[1];
    sampling.seed += ids.size();
    ids.push_back(*engine->Submit({.prompt = prompt,
                                   .sampling = sampling,
                                   .stop = kObservingStop,
                                   .prefix_scope = ids.size() % 2,
                                   .listener = &collector}));
  }
  for (int step = 0; engine->Step(); ++step) {
    if (step % 7 == 3) ForcePreemption(*engine);
  }
  const auto outputs = Finish(*engine, &collector, ids);
  int preemptions = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(outputs[i].tokens, ObservingTruth(1)[i]) << i;
    preemptions += outputs[i].stats.preemptions;
  }
  EXPECT_GT(preemptions, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Observing,
    testing::Values(
        ObservingCase{"Jacobi", kJacobiMode, {.max_batch = 1}},
        ObservingCase{"JacobiBatch3", kJacobiMode, {.plan = {.lookahead = 12}, .max_batch = 3}},
        ObservingCase{"Lookahead", kLookaheadMode, {.max_batch = 1}},
        ObservingCase{"LookaheadBatch3", kLookaheadMode, {.plan = Window(7, 3, 4), .max_batch = 3}},
        ObservingCase{
            "LookaheadTinyPool",
            kLookaheadMode,
            {.plan = Window(4, 2, 3), .max_batch = 5, .max_context = 160, .kv_tokens = 192}},
        ObservingCase{"Recycle", kRecycleMode, {.plan = {.lookahead = 31}, .max_batch = 1}},
        ObservingCase{"RecycleBatch3", kRecycleMode, {.plan = {.lookahead = 12}, .max_batch = 3}},
        ObservingCase{"Racer", kRacerMode, {.plan = {.lookahead = 31}, .max_batch = 1}},
        ObservingCase{
            "RacerTinyPool",
            kRacerMode,
            {.plan = {.lookahead = 15}, .max_batch = 5, .max_context = 160, .kv_tokens = 192}}),
    [](const auto& test) { return test.param.name; });

TEST(Lookahead, RequestsMayShapeTheirWindows) {
  const std::vector<Mode> modes = {Mode::kAr, kLookaheadMode};
  const auto engine = MakeEngine(modes, {.max_batch = 1}, BundledTarget(), {});
  ASSERT_TRUE(engine.ok());
  Collector collector;
  const auto submit = [&](const PlanOptions& plan) {
    return (*engine)->Submit({.prompt = StoryPrompts()[0],
                              .sampling = ObservingSettings()[0],
                              .stop = kObservingStop,
                              .plan = plan,
                              .listener = &collector});
  };
  const auto small = submit(
      {.mode = kLookaheadMode, .lookahead = 2, .lookahead_window = 2, .lookahead_guesses = 1});
  const auto large = submit(
      {.mode = kLookaheadMode, .lookahead = 6, .lookahead_window = 5, .lookahead_guesses = 5});
  const auto refused =
      submit({.mode = kLookaheadMode, .lookahead_window = 6, .lookahead_guesses = 5});
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_EQ(refused.error().message,
            "mode lookahead proposes (W + G) K = (6 + 5) x 6 = 66 tokens, more than 63: give a "
            "smaller lookahead_window, lookahead_guesses or lookahead");
  const auto outputs = Finish(**engine, &collector, {*small, *large});
  for (const auto& output : outputs) EXPECT_EQ(output.tokens, ObservingTruth(0)[0]);
  const RequestStats& of_small = outputs[0].stats;
  const RequestStats& of_large = outputs[1].stats;
  EXPECT_LE(of_small.proposed, 6 * of_small.rounds);
  EXPECT_GT(of_large.proposed, 20 * of_large.rounds);
}

}  // namespace
}  // namespace foretoken
