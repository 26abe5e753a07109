// An engine goes on with another draft while sequences decode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foretoken/engine.h"
#include "foretoken/generate.h"
#include "foretoken/model.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

ModelSource BundledSource(const std::string& name, const std::string& weights = "") {
  return {.path = std::string(FORETOKEN_SOURCE_DIR) + "/models/" + name, .weights = weights};
}

std::shared_ptr<LanguageModel> PinnedTarget() {
  static const auto target =
      LanguageModel::Load({.source = BundledSource("demo-target"), .cores = {0}});
  EXPECT_TRUE(target.ok()) << (target.ok() ? "" : target.error().message);
  return *target;
}

DraftOptions PinnedDraft(ModelSource source) { return {.source = std::move(source), .cores = {1}}; }

std::unique_ptr<Engine> OpenModes(std::vector<Mode> modes, DraftOptions draft) {
  auto engine = Engine::Open(
      PinnedTarget(), {.modes = std::move(modes), .draft = std::move(draft), .max_batch = 4});
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
  return std::move(engine).value();
}

std::vector<Request> Requests(std::vector<Mode> modes) {
  std::vector<Request> requests;
  for (const char* text : {"Once upon a time", "The cat", "One day, Lily", "A small dragon"}) {
    Request& request = requests.emplace_back();
    request.prompt = PinnedTarget()->tokenizer()->Encode(text, true, false);
    request.sampling = {.temperature = requests.size() % 2 == 0 ? 0.9F : 0.0F, .seed = 7};
    request.stop = {.max_tokens = 80, .ignore_eos = true};
    request.plan = PlanOptions{.mode = modes[requests.size() % modes.size()]};
  }
  return requests;
}

TEST(NextDraft, TakesTheOthersPlaceWithoutATokenLess) {
  const auto plain = OpenModes({Mode::kAr}, {});
  const auto expected = Generate(*plain, Requests({Mode::kAr}), 4).value();
  // The second is the target itself, and so nearly always right.
  const DraftOptions drafts[] = {PinnedDraft(BundledSource("demo-draft")),
                                 PinnedDraft(BundledSource("demo-target", "q8_0")),
                                 PinnedDraft(BundledSource("demo-draft", "q4_0"))};
  const std::vector<Mode> modes = {Mode::kSd, Mode::kSsd};
  const auto engine = OpenModes(modes, drafts[0]);
  const auto before = Generate(*engine, Requests(modes), 4).value();
  int steps = 0;
  int taken = 0;
  std::shared_ptr<NextDraft> next;
  const auto swap_now_and_then = [&] {
    if (++steps % 4 != 0) return;
    if (next != nullptr) taken += next->taken() ? 1 : 0;
    std::thread([&] {  // As a server would, beside the one that steps.
      auto prepared = engine->PrepareDraft(drafts[steps / 4 % 3]);
      ASSERT_TRUE(prepared.ok()) << prepared.error().message;
      next = std::move(prepared).value();
      EXPECT_FALSE(next->taken());
      engine->UseDraft(next);
    })
        .join();
  };
  const auto swapped =
      Generate(*engine, Requests(modes), 4, {.before_step = swap_now_and_then}).value();
  EXPECT_GE(taken, 3);
  const auto good = engine->PrepareDraft(drafts[1]);
  ASSERT_TRUE(good.ok());
  engine->UseDraft(*good);
  const auto after = Generate(*engine, Requests(modes), 4).value();
  EXPECT_TRUE((*good)->taken());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(before[i].tokens, expected[i].tokens) << i;
    EXPECT_EQ(swapped[i].tokens, expected[i].tokens) << i;
    EXPECT_EQ(after[i].tokens, expected[i].tokens) << i;
    // In the other modes how much is prepared is a question of time.
    if (modes[(i + 1) % modes.size()] != Mode::kSd) continue;
    EXPECT_LT(after[i].stats.rounds, before[i].stats.rounds) << i;
  }
  EXPECT_TRUE(engine->CheckIdle().ok());
}

TEST(NextDraft, IsRefusedWhereItDoesNotFit) {
  const auto engine = OpenModes({Mode::kSd}, PinnedDraft(BundledSource("demo-draft")));
  EXPECT_THAT(engine->PrepareDraft(PinnedDraft(BundledSource("nothing"))).error().message,
              HasSubstr("nothing"));
  const auto plain = OpenModes({Mode::kAr}, {});
  EXPECT_THAT(plain->PrepareDraft(PinnedDraft(BundledSource("demo-draft"))).error().message,
              HasSubstr("no mode that drafts with a model"));
}

}  // namespace
}  // namespace foretoken
