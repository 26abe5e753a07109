// Drafts that read and write texts in tokens of their own: what comes out is the target's choice,
// and a draft that knows the target's words is right as often as one that has its tokens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/draft/registry.h"
#include "door/assembly/fit_draft.h"
#include "tests/engine/draft_variant_testing.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr StopRules kByTextStop{.max_tokens = 40};

// The bundled draft's tokens under other ids, by text.
DraftOptions ReversedByText() {
  static const DraftVariant variant(DraftVariant::Reversed());
  DraftOptions options = variant.Options();
  options.by_text = true;
  return options;
}

// No token of several bytes: what it shares is too little.
DraftOptions Letters() {
  static const DraftVariant variant([] {
    std::vector<Token> tokens;
    for (Token token = 0; token < DraftVariant::kAll; ++token) {
      const auto bytes = BundledTarget()->tokenizer->TokenBytes(token);
      if (token < DraftVariant::kWords || bytes.size() == 1) tokens.push_back(token);
    }
    return tokens;
  }());
  return variant.Options();
}

std::vector<std::vector<Token>> OddPrompts() {
  std::vector<std::vector<Token>> prompts = StoryPrompts();
  const char* odd = "Lily said: “naïve café” — 你好 \U0001F600\U0001F680 and then";
  prompts.push_back(BundledTarget()->tokenizer->Encode(odd, true, false));
  prompts.push_back(prompts.back());
  prompts.back().resize(prompts.back().size() - 8);  // In the middle of a character.
  return prompts;
}

std::vector<std::vector<Token>> GeneratedByText(Mode mode, const EngineConfig& options,
                                                const DraftOptions& draft,
                                                const SamplingParams& sampling) {
  return TokensOf(Generate(*Make(mode, options, draft), OddPrompts(), sampling, kByTextStop));
}

TEST(DraftByText, TheTokensAreTheTargets) {
  const EngineConfig chain{.plan = {.lookahead = 6}, .max_batch = 1};
  const EngineConfig batch{.max_batch = 4, .prefix_cache = false};
  const EngineConfig preempted{.max_batch = 5, .max_context = 160, .kv_tokens = 192};
  for (const float temperature : {0.0F, 0.7F, 1.3F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 31};
    const auto truth = GeneratedByText(Mode::kAr, {}, {}, sampling);
    for (const EngineConfig& options : {chain, batch, preempted}) {
      EXPECT_EQ(GeneratedByText(Mode::kSd, options, ReversedByText(), sampling), truth);
    }
    EXPECT_EQ(GeneratedByText(Mode::kSd, preempted, Letters(), sampling), truth);
    EXPECT_EQ(GeneratedByText(kEnsemble, batch, ReversedByText(), sampling), truth);
  }
}

// Greedy, one vocabulary in two orders: the same guesses but for what the end of a text hides.
TEST(DraftByText, IsRightAsOftenAsByTokens) {
  DraftOptions by_tokens = ReversedByText();
  by_tokens.by_text = false;
  std::vector<std::int64_t> accepted;
  for (const DraftOptions& draft : {by_tokens, ReversedByText()}) {
    const auto engine = Make(Mode::kSd, {.plan = {.lookahead = 4}, .max_batch = 1}, draft);
    std::int64_t sum = 0;
    for (const auto& output : Generate(*engine, StoryPrompts(), {}, kByTextStop)) {
      sum += output.stats.accepted;
    }
    accepted.push_back(sum);
  }
  EXPECT_GT(accepted[0], 60);
  EXPECT_GE(accepted[1], accepted[0] * 0.9);
}

// A drafter that has followed a text, taking tokens back where they changed, has the keys of the
// text as it is: it says what one says that reads the text anew.
TEST(DraftByText, TheDraftHasReadTheTextAsItIs) {
  for (const DraftOptions& options : {ReversedByText(), Letters()}) {
    auto opened = FitByText(BundledTarget()->tokenizer, OpenModel(options.source).value());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const auto draft =
        LoadModel(*opened, std::make_shared<Device>(CoreSet{TargetCore()}), Precision::kBF16)
            .value();
    const auto make = [&] {
      return MakeModelDrafter({.vocabulary = DraftVariant::kAll,
                               .max_sequences = 1,
                               .max_context = 256,
                               .draft = {std::shared_ptr<void>(), draft->model.get()},
                               .text = draft->text});
    };
    const auto propose = [&](Drafter& drafter, std::span<const Token> tokens) {
      const SamplingParams sampling{.temperature = 0.8F, .seed = 3};
      const TokenHistory history(DraftVariant::kAll);
      Proposal proposal;
      DraftContext context{.sequence = 1,
                           .tokens = tokens,
                           .sampling = &sampling,
                           .history = &history,
                           .lookahead = 5,
                           .max_nodes = 5,
                           .proposal = &proposal};
      drafter.Propose({&context, 1});
      return std::vector<Token>(proposal.tokens.begin(), proposal.tokens.end());
    };
    std::mt19937 random(5);
    const auto lived = make();
    std::vector<Token> text = OddPrompts().back();
    int proposed = 0;
    for (int round = 0; round < 40; ++round) {
      const std::vector<Token> guess = propose(*lived, text);
      EXPECT_EQ(guess, propose(*make(), text)) << round;
      EXPECT_LE(guess.size(), 5U);
      proposed += guess.size();
      // Some of it comes true, then something else: any token, also of bytes.
      const std::size_t right = random() % 4;
      text.insert(text.end(), guess.begin(), guess.begin() + std::min(right, guess.size()));
      text.push_back(static_cast<Token>(5 + random() % (DraftVariant::kAll - 5)));
    }
    EXPECT_GT(proposed, 40);
  }
}

// What is proposed is a point mass, so the seeds' outputs follow the target's distribution; here
// that a greedy one is the target's, and that others end.
TEST(DraftByText, IsVerifiedByRejectionToo) {
  const EngineConfig options{.max_batch = 2, .verification = Verification::kRejection};
  EXPECT_EQ(GeneratedByText(Mode::kSd, options, ReversedByText(), {}),
            GeneratedByText(Mode::kAr, {}, {}, {}));
  for (const auto& tokens :
       GeneratedByText(Mode::kSd, options, ReversedByText(), {.temperature = 1.0F})) {
    EXPECT_FALSE(tokens.empty());
  }
}

TEST(DraftByText, UnderAGrammarToo) {
  const auto constraint = BundledTarget()->constraints->Compile(
      R"(root ::= "[" (" " word ",")* " " word "]"
word ::= "once" | "park" | "little" | "happily" | "forest" | "dragon" | "bird")");
  const auto outputs = [&](Mode mode, const DraftOptions& draft) {
    SamplingParams sampling{.temperature = 1.0F, .seed = 4};
    sampling.constraint = constraint.value();
    return GeneratedByText(mode, {.max_batch = 2}, draft, sampling);
  };
  EXPECT_EQ(outputs(Mode::kSd, ReversedByText()), outputs(Mode::kAr, {}));
}

TEST(DraftByText, IsDoneWhereTooLittleIsSharedAndSaysSo) {
  std::vector<std::string> told;
  EngineConfig options{.max_batch = 1};
  options.log = [&](std::string_view line) { told.emplace_back(line); };
  Make(Mode::kSd, options, Letters());
  EXPECT_THAT(told, testing::ElementsAre("the draft drafts by text, since it has too few of the "
                                         "target's tokens"));
  const auto refused = [&](Mode mode, const DraftOptions& draft) {
    const auto engine = MakeEngine(mode, options, BundledTarget(), draft);
    return engine.ok() ? std::string() : engine.error().message;
  };
  EXPECT_THAT(refused(Mode::kSsd, Letters()), HasSubstr("tokens of its own: take mode sd"));
  EXPECT_THAT(refused(kStaged, Letters()), HasSubstr("cannot be a stage: it drafts by text"));
  DraftOptions limited = ReversedByText();
  limited.source.draft_vocabulary.most = 100;
  EXPECT_THAT(refused(Mode::kSd, limited), HasSubstr("leave --draft-vocab out"));
  DraftOptions random = ReversedByText();
  random.source = {.synthetic = "draft-2m"};
  EXPECT_THAT(refused(Mode::kSd, random), testing::Not(IsEmpty()));
  EXPECT_FALSE(LoadDraftApart(BundledTarget(), Letters()).ok());
}

// Mode auto leaves out what such a draft cannot do.
TEST(DraftByText, AutoDraftsByTextBeforePassesOnly) {
  const auto cores = AvailableCores();
  if (cores.size() < 2) GTEST_SKIP() << "no core for a speculator";
  const Mode modes[] = {Mode::kAuto};
  const DraftOptions draft = Letters();
  EXPECT_THAT(OfferedModes(modes, std::span(&draft, 1), {}, *BundledTarget()->device),
              testing::Contains(Mode::kSsd));
  const auto engine = Make(Mode::kAuto, {.max_batch = 2}, draft);
  EXPECT_TRUE(engine->Offers(Mode::kSd));
  EXPECT_FALSE(engine->Offers(Mode::kSsd));
  const SamplingParams sampling{.temperature = 0.7F, .seed = 31};
  EXPECT_EQ(TokensOf(Generate(*engine, OddPrompts(), sampling, kByTextStop)),
            GeneratedByText(Mode::kAr, {}, {}, sampling));
}

}  // namespace
}  // namespace foretoken
