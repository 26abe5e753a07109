// No heap allocation per round in steady state: counted, not believed.

#include <gtest/gtest.h>

#include <bitset>
#include <chrono>
#include <thread>
#include <utility>

#include "base/allocation_counter_testing.h"
#include "base/files/temporary_testing.h"
#include "core/model/judge/judge_testing.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

class SilentListener : public RequestListener {
 public:
  void OnToken(SequenceId, const EmittedToken& token) override { bytes += token.text.size(); }
  void OnFinish(SequenceId, FinishReason, const RequestStats&) override {}
  void OnRound(SequenceId sequence, const RoundRecord& round) override {
    if (round.hit == true) hit.set(sequence % hit.size());
  }
  std::size_t bytes = 0;
  std::bitset<64> hit;  // Sequences that had something from the speculation cache.
};

constexpr int kTokens = 400;  // Tokens of each sequence of the batch that is looked at.

struct AllocationCase {
  Mode mode;
  float temperature = 0;
  int batch = 1;
  int width = 1;
  LossyRule lossy = {};
  // Tokens of each sequence of the first batch, which warms the drafts. By itself it is too short
  // for whole proposals, and what a pass over those takes must be there once sequences are
  // admitted: when they come is chance.
  int warming_tokens = 3;
};

void ExpectNoneInSteadyState(const AllocationCase& test, const DraftOptions& draft) {
  const auto [mode, temperature, batch, width, lossy, warming_tokens] = test;
  auto engine = MakeEngine(
      mode,
      {.plan = {.tree_width = width}, .max_batch = batch, .prefix_cache = false, .lossy = lossy},
      BundledTarget(), draft);
  ASSERT_TRUE(engine.ok());
  SilentListener listener;
  std::vector<SequenceId> ids;
  const auto generate = [&](int max_tokens) {
    for (int i = 0; i < batch; ++i) {
      const SamplingParams sampling{.temperature = temperature,
                                    .top_p = temperature > 0 ? 0.95F : 1.0F,
                                    .seed = static_cast<std::uint64_t>(i)};
      const auto id = (*engine)->Submit({.prompt = StoryPrompts()[i],
                                         .sampling = sampling,
                                         .stop = {.max_tokens = max_tokens, .ignore_eos = true},
                                         .listener = &listener});
      ASSERT_TRUE(id.ok());
      ids.push_back(*id);
    }
  };
  generate(warming_tokens);
  (*engine)->RunUntilIdle();
  listener.hit.reset();
  generate(kTokens);
  for (int step = 0; step < 3; ++step) (*engine)->Step();
  // A late speculator may have the prompts still before it.
  for (int step = 0; step < 60 && mode == Mode::kSsd && std::cmp_less(listener.hit.count(), batch);
       ++step) {
    (*engine)->Step();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const long before = allocations;
  for (int step = 0; step < 25; ++step) ASSERT_TRUE((*engine)->Step());
  EXPECT_EQ(allocations - before, 0);
  // What they would say after that is not looked at.
  for (const SequenceId id : ids) (*engine)->Cancel(id);
  (*engine)->RunUntilIdle();
}

class Allocations : public testing::TestWithParam<std::tuple<Mode, float, int, int>> {};

TEST_P(Allocations, NoneInSteadyState) {
  const auto [mode, temperature, batch, width] = GetParam();
  ExpectNoneInSteadyState({mode, temperature, batch, width}, BundledDraft());
}

// A draft that is shown the target's blocks every round.
TEST(SelfKv, NothingIsAllocatedInSteadyState) {
  DraftOptions draft = BundledDraft();
  draft.source = {.path = BundledModel("demo-target"), .own_drafter = "exit=3"};
  for (const int width : {1, 3}) {
    ExpectNoneInSteadyState({.mode = Mode::kSd, .batch = 2, .width = width}, draft);
  }
  ExpectNoneInSteadyState({.mode = kStaged, .batch = 2}, draft);
}

// A draft whose keys and values are given back as it goes on, those of its anchors kept.
TEST(DraftWindow, NothingIsAllocatedInSteadyState) {
  DraftOptions draft = BundledDraft();
  draft.window = DraftWindow{.positions = 16};
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    ExpectNoneInSteadyState({.mode = mode, .batch = 2, .width = 3}, draft);
  }
}

// A drafter that keeps the texts in flight takes the memory of those that have ended, and has to
// allocate only where one grows longer than all before.
TEST(TextsInFlight, NothingIsAllocatedForTextsAsLongAsThoseBefore) {
  constexpr Mode kRacer{Schedule::kBefore, DrafterId::kRacer};
  for (const float temperature : {0.0F, 1.0F}) {
    for (const int batch : {1, 3}) {
      ExpectNoneInSteadyState(
          {.mode = kRacer, .temperature = temperature, .batch = batch, .warming_tokens = kTokens},
          BundledDraft());
    }
  }
}

TEST(JudgedAllocations, NoneInSteadyState) {
  const TemporaryFolder folder;
  const std::size_t hidden = BundledTarget()->model->config().hidden;
  WriteJudge(folder.path(), std::vector<float>(hidden, 0.1F), 0);
  const LossyRule rule{.kind = Lossy::kJudge, .judge = folder.path().string()};
  ExpectNoneInSteadyState({.mode = Mode::kSd, .batch = 2, .lossy = rule}, BundledDraft());
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Allocations,
    testing::Combine(testing::Values(Mode::kAr, Mode::kSd, Mode::kSsd,
                                     Mode{Schedule::kBefore, DrafterId::kStaged}),
                     testing::Values(0.0F, 1.0F), testing::Values(1, 3), testing::Values(1, 3)));

INSTANTIATE_TEST_SUITE_P(
    Observing, Allocations,
    testing::Combine(testing::Values(Mode{Schedule::kBefore, DrafterId::kJacobi},
                                     Mode{Schedule::kBefore, DrafterId::kLookahead},
                                     Mode{Schedule::kBefore, DrafterId::kRecycle}),
                     testing::Values(0.0F, 1.0F), testing::Values(1, 3), testing::Values(1)));

}  // namespace
}  // namespace foretoken
