// Drafts that say the most frequent tokens only: their logits are those of the whole draft, and the
// same tokens come out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "base/files/temporary_testing.h"
#include "base/numbers/integers.h"
#include "core/model/model_testing.h"
#include "door/assembly/fit_draft.h"
#include "tests/engine/draft_variant_testing.h"
#include "tests/engine/engine_testing.h"
#include "text/tokenizer/pair/token_ranking.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

constexpr std::size_t kAll = DraftVariant::kAll;

// How often the target says each token, and the stories' prompts have it.
class Ranked {
 public:
  Ranked() {
    std::vector<std::uint64_t> counts(kAll);
    const auto count = [&](std::span<const Token> tokens) {
      for (const Token token : tokens) ++counts[token];
    };
    for (const auto& tokens : GeneratedStories(Mode::kAr, {}, {}, {})) count(tokens);
    for (const auto& tokens : StoryPrompts()) count(tokens);
    ranking_ = RankTokens(*BundledTarget()->tokenizer, counts);
    folder_.Write("ranking.txt", FormatTokenRanking(ranking_));
  }

  DraftVocabulary First(std::optional<int> most) const {
    return {(folder_.path() / "ranking.txt").string(), most};
  }
  // By token.
  std::vector<bool> Said(int most) const {
    std::vector<bool> said(kAll);
    for (int i = 0; i < most; ++i) {
      said[ranking_.entries.at(Size(i)).token] = true;
    }
    for (const Token token : BundledTarget()->model->config().eos) {
      said[token] = true;
    }
    for (const Token token : BundledTarget()->tokenizer->eos()) {
      said[token] = true;
    }
    return said;
  }

 private:
  TokenRanking ranking_;
  TemporaryFolder folder_;
};

const Ranked& StoryRanking() {
  static const Ranked ranking;
  return ranking;
}

Result<OpenedModel> Fitted(const ModelSource& source) {
  FT_ASSIGN_OR_RETURN(OpenedModel opened, OpenModel(source));
  return FitDraft(BundledTarget()->model->config(), BundledTarget()->tokenizer, std::move(opened));
}

std::unique_ptr<LoadedModel> Loaded(const ModelSource& source, Precision precision) {
  const auto fitted = Fitted(source);
  EXPECT_TRUE(fitted.ok()) << (fitted.ok() ? "" : fitted.error().message);
  return LoadModel(*fitted, std::make_shared<Device>(CoreSet{TargetCore()}), precision).value();
}

DraftOptions LimitedTo(std::optional<int> most, DraftOptions draft = BundledDraft()) {
  draft.source.draft_vocabulary = StoryRanking().First(most);
  return draft;
}

TEST(ReducedDraft, HasTheWholeDraftsLogitsOfWhatItMaySay) {
  const std::vector<bool> said = StoryRanking().Said(100);
  for (const Precision precision : {Precision::kBF16, Precision::kF32, Precision::kPortable}) {
    for (const char* weights : {"", "q8_0", "q4_k_m"}) {
      for (const std::string& path : {BundledModel("demo-draft"), ReversedVariant().path()}) {
        ModelSource source{.path = path, .weights = weights};
        const auto whole = Loaded(source, precision);
        source.draft_vocabulary = StoryRanking().First(100);
        const auto reduced = Loaded(source, precision);
        const std::vector<float> all = StoryLogits(*whole);
        const std::vector<float> some = StoryLogits(*reduced);
        ASSERT_EQ(some.size(), all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
          const float expected = said[i % kAll] ? all[i] : -std::numeric_limits<float>::infinity();
          ASSERT_EQ(some[i], expected) << PrecisionName(precision) << weights << i;
        }
        // The head is all that is smaller, and it is most of so small a draft.
        EXPECT_LT(reduced->model->weight_bytes(), whole->model->weight_bytes());
        EXPECT_NE(reduced->identity, whole->identity);
      }
    }
  }
}

TEST(ReducedDraft, TheTokensAreTheSameHoweverFewItMaySay) {
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 21};
    const auto truth = GeneratedStories(Mode::kAr, {}, {}, sampling);
    for (const int most : {1, 40}) {
      const DraftOptions draft = LimitedTo(most);
      EXPECT_EQ(GeneratedStories(Mode::kSd, {.max_batch = 3}, draft, sampling), truth);
      EXPECT_EQ(
          GeneratedStories(Mode::kSd, {.plan = {.lookahead = 4, .tree_width = 3, .max_nodes = 12}},
                           draft, sampling),
          truth);
      EXPECT_EQ(GeneratedStories(Mode::kSsd, {.max_batch = 1}, draft, sampling), truth);
      EXPECT_EQ(GeneratedStories(Mode::kSsd, {.plan = {.tree_width = 3}, .max_batch = 3}, draft,
                                 sampling),
                truth);
      EXPECT_EQ(GeneratedStories(Mode::kSssd, {.max_batch = 2}, draft, sampling), truth);
    }
  }
}

TEST(ReducedDraft, IsAcceptedAsOftenWhereItMaySayWhatTheTargetSays) {
  const auto accepted = [](const DraftOptions& draft) {
    const auto engine = MakeEngine(Mode::kSd, {.max_batch = 2}, BundledTarget(), draft);
    std::int64_t sum = 0;
    for (const auto& output : Generate(**engine, StoryPrompts(), {}, kVariantStop)) {
      sum += output.stats.accepted;
    }
    return sum;
  };
  const std::int64_t whole = accepted(BundledDraft());
  const std::int64_t all = accepted(LimitedTo(std::nullopt));
  const std::int64_t few = accepted(LimitedTo(20));
  EXPECT_GE(all, whole * 95 / 100);
  EXPECT_LT(few, all);
  EXPECT_GT(few, 0);
  // Under other ids it is the same draft.
  EXPECT_EQ(accepted(LimitedTo(20, ReversedVariant().Options())), few);
}

TEST(ReducedDraft, AGrammarMayWantWhatItDoesNotSay) {
  const auto outputs = [&](Mode mode, const DraftOptions& draft) {
    auto engine = MakeEngine(mode, {.max_batch = 2}, BundledTarget(), draft);
    SamplingParams sampling{.temperature = 1.0F, .seed = 4};
    sampling.constraint = BundledTarget()
                              ->constraints
                              ->Compile(R"(root ::= "[" (" " word ",")* " " word "]"
word ::= "once" | "park" | "little" | "happily" | "forest" | "dragon" | "bird")")
                              .value();
    Collector collector;
    const SequenceId id = (*engine)
                              ->Submit({.prompt = StoryPrompts()[0],
                                        .sampling = sampling,
                                        .stop = kVariantStop,
                                        .listener = &collector})
                              .value();
    return Finish(**engine, &collector, std::vector<SequenceId>{id}).front().tokens;
  };
  const auto truth = outputs(Mode::kAr, {});
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    EXPECT_EQ(outputs(mode, LimitedTo(30)), truth) << ModeName(mode);
  }
}

TEST(ReducedDraft, OfRandomWeightsTheLowestIdsAreTheMostFrequent) {
  OpenedModel opened =
      OpenModel({.synthetic = "draft-12m", .draft_vocabulary = {.most = 1000}}).value();
  const ModelConfig target = opened.config;
  const auto fitted = FitDraft(target, nullptr, std::move(opened));
  ASSERT_TRUE(fitted.ok()) << fitted.error().message;
  EXPECT_EQ(fitted->config.vocabulary, 1000);
  EXPECT_EQ(fitted->config.embeddings(), target.vocabulary);
  EXPECT_EQ(fitted->translation->said[999], 999);
  EXPECT_EQ(fitted->translation->said[1000], -1);
  EXPECT_EQ(std::ssize(fitted->translation->said), target.vocabulary);
}

TEST(ReducedDraft, WhatDoesNotGoTogetherIsRefused) {
  const auto refusal = [](const ModelSource& source) {
    const auto fitted = Fitted(source);
    return fitted.ok() ? "" : fitted.error().message;
  };
  ModelSource source{.path = BundledModel("demo-draft")};
  source.draft_vocabulary = {"/nowhere", 5};
  EXPECT_THAT(refusal(source), HasSubstr("/nowhere: cannot be read: No such file"));
  source.draft_vocabulary = {"", 5};
  EXPECT_THAT(refusal(source), HasSubstr("foretoken datastore rank"));
  TemporaryFolder folder;
  folder.Write("other.txt", "foretoken-token-ranking 1 abc 2048\n5 1\n");
  source.draft_vocabulary = {(folder.path() / "other.txt").string(), 5};
  EXPECT_THAT(refusal(source), HasSubstr("ranks the tokens of another tokenizer"));
  source.draft_vocabulary = StoryRanking().First(5);
  EXPECT_THAT(
      LoadModel(source, std::make_shared<Device>(CoreSet{TargetCore()}), {}).error().message,
      HasSubstr("only a draft may be limited"));
  source = {.synthetic = "draft-12m"};
  source.draft_vocabulary = StoryRanking().First(5);
  OpenedModel opened = OpenModel(source).value();
  const ModelConfig target = opened.config;
  EXPECT_THAT(FitDraft(target, nullptr, std::move(opened)).error().message,
              HasSubstr("random weights have none"));
}

}  // namespace
}  // namespace foretoken
