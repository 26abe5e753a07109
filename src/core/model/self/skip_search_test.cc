#include "core/model/self/skip_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/files/temporary_testing.h"
#include "core/model/model_testing.h"
#include "core/model/self/likeliest_tokens.h"
#include "core/model/self/self_draft.h"
#include "core/model/self/skip_set.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

ModelConfig Layers(int layers) {
  return LlamaConfig({.hidden = 32,
                      .intermediate = 64,
                      .layers = layers,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = 8,
                      .vocabulary = 100,
                      .max_positions = 512});
}

TEST(SkipSearch, PredictsWhatTheTheoremSays) {
  const auto at = [](double a, double c, int g) {
    return (1 - std::pow(a, g + 1)) / ((1 - a) * (g * c + 1));
  };
  double best = 0;
  for (int drafted = 1; drafted <= 16; ++drafted) best = std::max(best, at(0.8, 0.1, drafted));
  EXPECT_NEAR(PredictedSpeedup(0.8, 0.1), best, 1e-12);
  EXPECT_NEAR(PredictedSpeedup(1, 0), 17, 1e-12);
  EXPECT_LT(PredictedSpeedup(0.1, 0.9), 1);
}

// Agreement falls by what a set leaves out, little for half of the sub-layers: those it must find.
TEST(SkipSearch, FindsTheSetThatDraftsBest) {
  const int layers = 12;
  auto search = SkipSearch::Begin(Layers(layers), 0.45, 400, 1);
  ASSERT_TRUE(search.ok());
  std::set<std::string> named;
  for (;;) {
    const auto set = search->Next();
    if (!set.has_value()) break;
    EXPECT_TRUE(named.insert(set->ToText()).second) << "twice: " << set->ToText();
    EXPECT_FALSE(set->mixers.front() || set->mlps.front() || set->mixers.back() ||
                 set->mlps.back());
    ComparedSet compared{.skipped = *set, .agreement = 1, .cost = 1};
    for (std::size_t i = 0; i < layers; ++i) {
      if (set->mixers[i]) compared.agreement *= i % 2 == 0 ? 0.995 : 0.7;
      if (set->mlps[i]) compared.agreement *= i % 2 == 1 ? 0.995 : 0.7;
      compared.cost -= ((set->mixers[i] ? 1 : 0) + (set->mlps[i] ? 1 : 0)) / 24.0;
    }
    compared.speedup = PredictedSpeedup(compared.agreement, compared.cost);
    search->Tell(compared);
  }
  EXPECT_EQ(search->compared(), 400);
  EXPECT_EQ(search->best()->skipped.ToText(), "a2,a4,a6,a8,a10,m1,m3,m5,m7,m9");
}

TEST(SkipSearch, EndsWhereEverySetWasNamedAndRefusesModelsWithoutAny) {
  auto small = SkipSearch::Begin(Layers(3), 0.45, 1000, 1);  // Two sub-layers, three sets.
  ASSERT_TRUE(small.ok());
  while (const auto set = small->Next()) small->Tell({.skipped = *set});
  EXPECT_EQ(small->compared(), 3);
  EXPECT_THAT(SkipSearch::Begin(Layers(2), 0.45, 10, 1).error().message,
              HasSubstr("no sub-layer that could be left out"));
}

TEST(SkipSet, ComesBackFromItsFile) {
  TemporaryFolder folder;
  const auto path = folder.path() / "skip.json";
  const SkipSet set{.model = std::string(64, 'a'),
                    .skipped = *ParseSkippedSublayers("a3,m2-m4", 6),
                    .agreement = 0.75,
                    .cost = 0.5,
                    .speedup = 1.25,
                    .tokens = 1000,
                    .sets = 200};
  ASSERT_TRUE(WriteSkipSet(path, set).ok());
  const auto read = ReadSkipSet(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->skipped, set.skipped);
  EXPECT_EQ(read->agreement, 0.75);
  EXPECT_EQ(read->sets, 200);

  const std::string own = "skip=" + path.string();
  EXPECT_EQ(*ReadSelfDraft(own, 6, set.model), set.skipped);
  EXPECT_THAT(ReadSelfDraft(own, 6, std::string(64, 'b')).error().message,
              HasSubstr("was searched for another model"));
  folder.Write("skip.json", "{\"model\": \"abcdef01\", \"layers\": 6, \"attention\": [6]}");
  EXPECT_THAT(ReadSelfDraft(own, 6, "abcdef01").error().message, HasSubstr("attention"));
  folder.Write("skip.json", "a3");
  EXPECT_THAT(ReadSelfDraft(own, 6, "abcdef01").error().message, HasSubstr("is no JSON"));
}

TEST(SelfDraft, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(IsSelfDraft("exit=2"));
  EXPECT_TRUE(IsSelfDraft("skip=a1"));
  EXPECT_FALSE(IsSelfDraft("mtp"));
  EXPECT_EQ(ReadSelfDraft("exit=2", 6, "")->ToText(), "a2-a5,m2-m5");
  EXPECT_THAT(ReadSelfDraft("exit=two", 6, "").error().message, HasSubstr("write exit=E"));
  EXPECT_THAT(ReadSelfDraft("exit=6", 6, "").error().message, HasSubstr("self:exit=6: "));
  EXPECT_THAT(ReadSelfDraft("skip=./none.json", 6, "").error().message,
              HasSubstr("there is no file ./none.json"));
}

// Asked in pieces or alone, a token is what a pass over its text says.
TEST(LikeliestTokens, AreThoseOfOnePass) {
  const auto backend = MakeReferenceBackend(Precision::kF32);
  const auto model = SyntheticModel(Layers(2), 3, backend.get());
  const std::vector<Token> tokens = RandomTokens(300, 100);
  SequenceRunner runner(model.get(), 300);
  const float* logits = runner.Append(tokens);
  std::vector<Token> expected;
  for (int row = 0; row < 299; ++row) {
    const float* of_row = logits + row * 100;
    expected.push_back(static_cast<Token>(std::max_element(of_row, of_row + 100) - of_row));
  }
  const std::vector<Token> first(tokens.begin(), tokens.begin() + 10);
  std::vector<Token> both(expected.begin() + 6, expected.begin() + 9);
  both.insert(both.end(), expected.begin(), expected.end());
  EXPECT_EQ(LikeliestTokens(model.get(), std::vector<AskedText>{{first, 7}, {tokens, 1}}), both);
}

}  // namespace
}  // namespace foretoken
