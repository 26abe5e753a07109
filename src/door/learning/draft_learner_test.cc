// A draft follows what its engine decodes: texts become captures, what a trainer has made is judged
// by texts held back, and the better draft is used while sequences decode.
#include "door/learning/draft_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/files/temporary_testing.h"
#include "base/numbers/integers.h"
#include "core/weights/file_tensors.h"
#include "core/weights/safetensors.h"
#include "door/assembly/make_engine.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

fs::path Bundled(const std::string& name) {
  return fs::path(FORETOKEN_SOURCE_DIR) / "models" / name;
}

std::unique_ptr<LoadedModel> LoadTarget() {
  return LoadModel({.path = Bundled("demo-target").string()}, std::make_shared<Device>(CoreSet{0}),
                   std::nullopt)
      .value();
}

DraftOptions Draft(const fs::path& path) {
  return {.source = {.path = path.string()}, .cores = {1}};
}

// Counts rounds.
class Listener : public RequestListener {
 public:
  void OnToken(SequenceId, const EmittedToken& token) override { tokens.push_back(token.token); }
  void OnFinish(SequenceId, FinishReason, const RequestStats& last) override { stats = last; }
  std::vector<Token> tokens;
  RequestStats stats;
};

class Learning : public testing::Test {
 protected:
  // As Engine::Open wires it.
  void Open(Mode mode, DraftLearner** learner = nullptr) {
    EngineConfig config;
    config.plan.lookahead = 4;
    config.max_batch = 2;
    config.kept = {.points = {TapShape::kFinalState}, .hidden = 256};
    config.when_decoded = [this, learner](const DecodedText& text) {
      texts_.push_back({.tokens = {text.tokens.begin(), text.tokens.end()},
                        .prompt_tokens = text.prompt_tokens,
                        .sampling = *text.sampling,
                        .states = {}});
      for (std::size_t i = 0; i + 1 < text.tokens.size(); ++i) {
        const BFloat16* row = text.taps.At(static_cast<std::int32_t>(i));
        texts_.back().states.insert(texts_.back().states.end(), row, row + text.taps.width());
      }
      if (learner != nullptr && *learner != nullptr) (*learner)->Take(text);
    };
    auto engine = MakeEngine(std::vector{mode}, config, target_.get(), std::span(&draft_, 1));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = std::move(engine).value();
  }

  Listener Decode(int seed, float temperature) {
    Listener listener;
    Request request;
    request.prompt = target_->tokenizer->Encode("Once upon a time", true, false);
    request.prompt.push_back(static_cast<Token>(300 + seed % 50));
    request.sampling = {.temperature = temperature, .seed = static_cast<std::uint64_t>(seed)};
    request.stop = {.max_tokens = 60, .ignore_eos = true};
    request.listener = &listener;
    EXPECT_TRUE(engine_->Submit(std::move(request)).ok());
    engine_->RunUntilIdle();
    return listener;
  }

  // A model's folder as a trainer would leave it, all numbers zero where it is to be `useless`.
  void Offer(const std::string& name, const fs::path& model, bool useless = false) {
    const fs::path place = folder_.path() / "candidates" / name;
    const fs::path part = place.string() + ".part";
    fs::remove_all(place);
    fs::remove_all(part);
    fs::create_directories(part);
    fs::copy(model, part, fs::copy_options::recursive);
    if (useless) {
      const fs::path file = part / "model.safetensors";
      std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
      std::uint64_t header = 0;
      bytes.read(reinterpret_cast<char*>(&header), sizeof header);
      const auto begin = static_cast<std::streamoff>(sizeof header + header);
      bytes.seekp(begin);
      const std::string zeros(fs::file_size(file) - Size(begin), '\0');
      bytes.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
    }
    fs::rename(part, place);
  }

  // Decodes until the report says so.
  template <typename Done>
  LearningReport DecodeUntil(const DraftLearner& learner, const Done& done) {
    for (int i = 0; i < 2000 && !done(learner.report()); ++i) {
      const Listener decoded = Decode(i, i % 2 == 0 ? 0.0F : 0.8F);
      EXPECT_EQ(decoded.tokens.size(), 60U);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(done(learner.report()));
    return learner.report();
  }

  TemporaryFolder folder_;
  std::unique_ptr<LoadedModel> target_ = LoadTarget();
  DraftOptions draft_ = Draft(Bundled("demo-draft"));
  std::vector<StatedText> texts_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(Learning, JudgesAsDecodingDoes) {
  Open(Mode::kSd);
  std::int64_t rounds = 0;
  std::int64_t judged = 0;
  auto draft = JudgedDraft::Load(target_.get(), draft_, TapsOf(*engine_));
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  for (int seed = 0; seed < 6; ++seed) {
    rounds += Decode(seed, seed % 2 == 0 ? 0.0F : 0.9F).stats.rounds;
    const DraftScore score = (*draft)->Score(texts_.back(), /*lookahead=*/4);
    EXPECT_EQ(score.tokens, 59);  // All but the prompt's own.
    judged += score.rounds;
  }
  EXPECT_EQ(judged + 6, rounds);  // The pass over the prompt is a round, too.
}

TEST_F(Learning, UsesWhatIsBetterAndGoesBackWhereItIsNot) {
  DraftLearner* at = nullptr;
  Open(Mode::kSd, &at);
  std::vector<std::string> log;
  auto made = DraftLearner::Make(target_.get(), draft_, TapsOf(*engine_),
                                 {.folder = folder_.path().string(),
                                  .held_back_every = 2,
                                  .texts_to_judge = 4,
                                  .look_seconds = 0.02},
                                 [&log](std::string_view line) { log.emplace_back(line); });
  ASSERT_TRUE(made.ok()) << made.error().message;
  DraftLearner& learner = **made;
  at = &learner;
  learner.Begin(engine_.get());
  const Listener before = Decode(1, 0.8F);

  // The target itself is a better draft of its texts.
  Offer("00001", Bundled("demo-target"));
  LearningReport report =
      DecodeUntil(learner, [](const LearningReport& now) { return now.judged == 1; });
  EXPECT_EQ(report.kept, 1);
  EXPECT_EQ(report.candidate, "00001");
  EXPECT_EQ(DraftLearner::InUse(folder_.path()), folder_.path() / "candidates" / "00001");
  const Listener after = Decode(1, 0.8F);
  EXPECT_EQ(after.tokens, before.tokens);
  EXPECT_LT(after.stats.rounds, before.stats.rounds);

  // Later texts speak for the draft before, since this one has lost all that it knew.
  Offer("00001", Bundled("demo-draft"), /*useless=*/true);
  report = DecodeUntil(learner, [](const LearningReport& now) { return now.rolled_back == 1; });
  EXPECT_EQ(report.candidate, "");
  EXPECT_EQ(DraftLearner::InUse(folder_.path()), std::nullopt);
  EXPECT_EQ(Decode(1, 0.8F).tokens, before.tokens);

  // What is no better, or no draft at all, is not used.
  const std::int64_t judged = report.judged;
  Offer("00002", Bundled("demo-draft"), /*useless=*/true);
  report = DecodeUntil(learner, [=](const LearningReport& now) { return now.judged > judged; });
  EXPECT_EQ(report.candidate, "");
  EXPECT_EQ(report.kept, 1);
  Offer("00003", folder_.path() / "captures");
  std::ofstream(folder_.path() / "candidates" / "00003" / "config.json") << "{}";
  Offer("00004", Bundled("demo-target"));
  report = DecodeUntil(learner, [](const LearningReport& now) { return now.kept == 2; });
  EXPECT_EQ(report.candidate, "00004");
  // However fast texts come, they are on disk after five seconds.
  report = DecodeUntil(learner, [](const LearningReport& now) { return now.captured > 0; });
  EXPECT_GT(report.held_back, 0);
  EXPECT_EQ(report.failure, "");
  at = nullptr;
  made->reset();  // What waits is written.

  // Captures are as docs/look_up/formats.md defines them.
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path() / "captures")) {
    const auto file = TensorFile::Open(entry.path(), ParseSafetensors);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(DraftScore, TheBetterOneIsSurelyBetter) {
  const std::vector<DraftScore> in_use = {{60, 30}, {60, 20}, {60, 24}};
  EXPECT_FALSE(IsBetter(in_use, in_use));
  EXPECT_TRUE(IsBetter(std::vector<DraftScore>{{60, 20}, {60, 15}, {60, 18}}, in_use));
  // One text's luck.
  EXPECT_FALSE(IsBetter(std::vector<DraftScore>{{60, 10}, {60, 21}, {60, 26}}, in_use));
  EXPECT_FALSE(IsBetter(std::vector<DraftScore>{{60, 40}, {60, 30}, {60, 28}}, in_use));
}

}  // namespace
}  // namespace foretoken
