// Drafts whose tokens are not the target's: the same tokens come out, and what the draft has under
// other ids is drafted as if it had the target's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "core/draft/registry.h"
#include "core/model/model_testing.h"
#include "door/assembly/fit_draft.h"
#include "tests/engine/draft_variant_testing.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Every seventh word is not there, and others are.
constexpr bool Lacks(Token token) { return token >= DraftVariant::kWords && token % 7 == 3; }

const DraftVariant& Lacking() {
  static const DraftVariant variant([] {
    std::vector<Token> tokens;
    for (Token token = 0; token < DraftVariant::kAll; ++token) {
      if (token % 100 == 0) tokens.push_back(DraftVariant::kForeign);
      if (!Lacks(token)) tokens.push_back(token);
    }
    return tokens;
  }());
  return variant;
}

std::unique_ptr<LoadedModel> LoadFitted(const ModelSource& source, Precision precision) {
  auto opened = OpenModel(source);
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  auto fitted = FitDraft(BundledTarget()->model->config(), BundledTarget()->tokenizer,
                         std::move(opened).value());
  EXPECT_TRUE(fitted.ok()) << fitted.error().message;
  return LoadModel(*fitted, std::make_shared<Device>(CoreSet{TargetCore()}), precision).value();
}

TEST(DraftVocabulary, ADraftUnderOtherIdsIsTheSameModel) {
  for (const Precision precision : {Precision::kBF16, Precision::kF32, Precision::kPortable}) {
    for (const char* weights : {"", "q8_0", "q4_k_m"}) {
      const ModelSource bundled{.path = BundledModel("demo-draft"), .weights = weights};
      const ModelSource reversed{.path = ReversedVariant().path(), .weights = weights};
      EXPECT_EQ(StoryLogits(*LoadFitted(reversed, precision)),
                StoryLogits(*LoadFitted(bundled, precision)))
          << PrecisionName(precision) << weights;
    }
  }
}

TEST(DraftVocabulary, IsTheTargetsInAllButWeights) {
  const auto fitted = LoadFitted({.path = ReversedVariant().path()}, Precision::kBF16);
  const LoadedModel& target = *BundledTarget();
  EXPECT_EQ(fitted->tokenizer, target.tokenizer);
  EXPECT_EQ(fitted->model->config().eos, target.model->config().eos);
  EXPECT_EQ(fitted->model->config().bos, target.model->config().bos);
  // Told apart from the same files fitted to other tokens.
  const auto unfitted = OpenModel({.path = ReversedVariant().path()});
  EXPECT_NE(fitted->identity, unfitted->identity);
}

TEST(DraftVocabulary, UnderOtherIdsSdAcceptsTheSameTokens) {
  const SamplingParams greedy;
  const SamplingParams noisy{.temperature = 0.9F, .top_p = 0.95F, .seed = 3};
  const EngineConfig chain{.max_batch = 2};
  const EngineConfig tree{.plan = {.lookahead = 4, .tree_width = 3, .max_nodes = 12}};
  const EngineConfig rejection{.max_batch = 2, .verification = Verification::kRejection};
  for (const EngineConfig& options : {chain, tree, rejection}) {
    for (const SamplingParams& sampling : {greedy, noisy}) {
      const auto one = Make(Mode::kSd, options, BundledDraft());
      const auto other = Make(Mode::kSd, options, ReversedVariant().Options());
      const auto expected = Generate(*one, StoryPrompts(), sampling, kVariantStop);
      const auto outputs = Generate(*other, StoryPrompts(), sampling, kVariantStop);
      ASSERT_EQ(outputs.size(), expected.size());
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_EQ(outputs[i].tokens, expected[i].tokens);
        EXPECT_EQ(outputs[i].origins, expected[i].origins);
        EXPECT_EQ(outputs[i].stats.rounds, expected[i].stats.rounds);
        EXPECT_EQ(outputs[i].stats.proposed, expected[i].stats.proposed);
        EXPECT_EQ(outputs[i].stats.accepted, expected[i].stats.accepted);
        EXPECT_GT(outputs[i].stats.accepted, 0);
      }
    }
  }
}

TEST(DraftVocabulary, WhatADraftLacksItNeverSays) {
  const auto fitted = LoadFitted({.path = Lacking().path()}, Precision::kBF16);
  const std::vector<float> logits = StoryLogits(*fitted);
  const std::vector<float> whole =
      StoryLogits(*LoadFitted({.path = BundledModel("demo-draft")}, Precision::kBF16));
  ASSERT_EQ(logits.size(), whole.size());
  std::set<Token> lacked;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<Token>(i % DraftVariant::kAll);
    ASSERT_EQ(Lacks(token), logits[i] == -std::numeric_limits<float>::infinity()) << token;
    if (Lacks(token)) lacked.insert(token);
  }
  EXPECT_GT(lacked.size(), 200U);

  const auto drafter = MakeModelDrafter({.max_sequences = 1,
                                         .max_context = 512,
                                         .draft = {std::shared_ptr<void>(), fitted->model.get()}});
  TokenHistory history(DraftVariant::kAll);
  int wanted = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const SamplingParams sampling{.temperature = 2.0F, .seed = seed};
    for (const auto& prompt : StoryPrompts()) {
      Proposal proposal;
      DraftContext context{.sequence = 1,
                           .tokens = prompt,
                           .sampling = &sampling,
                           .history = &history,
                           .lookahead = 3,
                           .tree_width = 4,
                           .max_nodes = 40,
                           .proposal = &proposal};
      drafter->Propose({&context, 1});
      drafter->Forget(1);
      EXPECT_GT(proposal.size(), 8);  // Less where the draft is sure.
      for (const Token token : proposal.tokens) EXPECT_FALSE(Lacks(token)) << token;
      wanted += proposal.size();
    }
  }
  EXPECT_GT(wanted, 2000);
}

TEST(DraftVocabulary, WhateverADraftLacksTheTokensAreTheSame) {
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 21};
    const auto truth = GeneratedStories(Mode::kAr, {}, {}, sampling);
    bool lacked = false;
    for (const auto& tokens : truth) lacked = lacked || std::ranges::any_of(tokens, Lacks);
    EXPECT_TRUE(lacked) << "the test would not see much";
    for (const DraftVariant* variant : {&Lacking(), &ReversedVariant()}) {
      const DraftOptions draft = variant->Options();
      EXPECT_EQ(GeneratedStories(Mode::kSd, {.max_batch = 3}, draft, sampling), truth);
      EXPECT_EQ(GeneratedStories(Mode::kSsd, {.max_batch = 1}, draft, sampling), truth);
      EXPECT_EQ(GeneratedStories(Mode::kSsd, {.plan = {.tree_width = 3}, .max_batch = 3}, draft,
                                 sampling),
                truth);
    }
  }
}

// A grammar may want nothing but what the draft lacks; and it is compiled for the target's tokens.
TEST(DraftVocabulary, GrammarsAreOverTheTargetsTokens) {
  const std::string grammar = R"(root ::= "[" (" " word ",")* " " word "]"
word ::= "once" | "park" | "little" | "happily" | "forest" | "dragon" | "bird")";
  const auto outputs = [&](Mode mode, const DraftOptions& draft) {
    const auto engine = Make(mode, {.max_batch = 2}, draft);
    Collector collector;
    std::vector<SequenceId> ids;
    for (const auto& prompt : StoryPrompts()) {
      SamplingParams sampling{.temperature = 1.0F, .seed = ids.size()};
      sampling.constraint = BundledTarget()->constraints->Compile(grammar).value();
      ids.push_back(engine
                        ->Submit({.prompt = prompt,
                                  .sampling = sampling,
                                  .stop = kVariantStop,
                                  .listener = &collector})
                        .value());
    }
    return Finish(*engine, &collector, ids);
  };
  const auto truth = outputs(Mode::kAr, {});
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    for (const DraftVariant* variant : {&ReversedVariant(), &Lacking()}) {
      const auto found = outputs(mode, variant->Options());
      int accepted = 0;
      for (std::size_t i = 0; i < truth.size(); ++i) {
        EXPECT_EQ(found[i].tokens, truth[i].tokens) << ModeName(mode);
        accepted += static_cast<int>(found[i].stats.accepted);
      }
      EXPECT_GT(accepted, 20) << ModeName(mode);
    }
  }
}

TEST(DraftVocabulary, IsToldOfOnceWhereItDiffers) {
  std::vector<std::string> told;
  EngineConfig options{.max_batch = 1};
  options.log = [&](std::string_view line) { told.emplace_back(line); };
  Make(Mode::kSd, options, BundledDraft());
  EXPECT_THAT(told, IsEmpty());
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) Make(mode, options, Lacking().Options());
  EXPECT_THAT(told, testing::ElementsAre(
                        HasSubstr("of the target's 1714 tokens of several bytes it shares 1467")));
}

TEST(DraftVocabulary, SizesOfOutputsMayDifferAlone) {
  std::vector<Token> tokens(DraftVariant::kAll);
  std::iota(tokens.begin(), tokens.end(), 0);
  const DraftVariant same(tokens);
  std::string notice;
  OpenedModel opened = OpenModel({.path = same.path()}).value();
  ModelConfig larger = BundledTarget()->model->config();
  larger.vocabulary += 64;  // As outputs are filled up to a round number.
  const auto fitted = FitDraft(larger, BundledTarget()->tokenizer, std::move(opened), &notice);
  ASSERT_TRUE(fitted.ok()) << fitted.error().message;
  EXPECT_EQ(notice, "");
  ASSERT_NE(fitted->translation, nullptr);
  const std::vector<Token>& said = fitted->translation->said;
  ASSERT_EQ(said.size(), DraftVariant::kAll + 64U);
  for (Token token = 0; token < std::ssize(said); ++token) {
    EXPECT_EQ(said[token], token < DraftVariant::kAll ? token : -1);
  }
}

TEST(DraftVocabulary, ADraftThatSharesTooLittleIsRefused) {
  std::vector<Token> tokens(DraftVariant::kAll, DraftVariant::kForeign);
  std::iota(tokens.begin(), tokens.begin() + 330, 0);
  const DraftVariant foreign(tokens);
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    DraftOptions draft = foreign.Options();
    draft.by_text = false;
    const auto engine = MakeEngine(mode, {.max_batch = 1}, BundledTarget(), draft);
    ASSERT_FALSE(engine.ok());
    EXPECT_THAT(engine.error().message, AllOf(HasSubstr("tokens of several bytes it shares 69"),
                                              HasSubstr("(not 330 '"), HasSubstr("mode sssd")));
  }
}

}  // namespace
}  // namespace foretoken
