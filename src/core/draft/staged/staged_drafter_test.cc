// A draft model proposes with a helper what it proposes without, in fewer passes.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/draft/model/model_drafter.h"
#include "core/draft/staged/text_stage.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kStagedVocabulary = 12;  // So few that helpers are sometimes right.
constexpr int kStagedContext = 160;
constexpr int kSequences = 2;
constexpr int kStagedLookahead = 7;
constexpr double kCheap = 0.1;  // So that stages are asked whatever their models take here.

std::unique_ptr<Model> SmallModel(std::uint64_t seed, Backend* backend) {
  return SyntheticModel(LlamaConfig({.hidden = 32,
                                     .intermediate = 64,
                                     .layers = 1,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .head_dim = 8,
                                     .vocabulary = kStagedVocabulary,
                                     .max_positions = kStagedContext}),
                        seed, backend);
}

// What drafts for the model: drafters of texts, another model, or its own weights once more, with
// or without another stage below that.
enum class Below { kNgram, kRetrieval, kOther, kSame, kSameAndNgram, kSameAndSame };

struct StagedCase {
  std::string name;
  Below below = Below::kNgram;
  float temperature = 0;
  bool draws = false;
};

void PrintTo(const StagedCase& test, std::ostream* out) { *out << test.name; }

class Staged : public testing::TestWithParam<StagedCase> {
 protected:
  DrafterParts PartsWith(const std::shared_ptr<Model>& draft) const {
    return {.vocabulary = kStagedVocabulary,
            .max_sequences = kSequences,
            .max_context = kStagedContext,
            .draft = draft,
            .backend = backend_.get()};
  }
  std::unique_ptr<Stage> TextHelper(DrafterId id) const {
    return std::make_unique<TextStage>(MakeDrafter(id, PartsWith(nullptr)), id == DrafterId::kNgram,
                                       kSequences);
  }
  std::unique_ptr<Stage> ModelHelper(const std::shared_ptr<Model>& model,
                                     std::unique_ptr<Stage> below) const {
    return std::make_unique<ModelDrafter>(DrafterId::kModel2, PartsWith(model), std::move(below),
                                          StageWorth(kCheap));
  }
  std::unique_ptr<Stage> Helper(Below below) const {
    if (below == Below::kNgram) return TextHelper(DrafterId::kNgram);
    if (below == Below::kRetrieval) return TextHelper(DrafterId::kRetrieval);
    if (below == Below::kOther) return ModelHelper(other_, nullptr);
    if (below == Below::kSame) return ModelHelper(same_, nullptr);
    if (below == Below::kSameAndSame) return ModelHelper(same_, ModelHelper(same_, nullptr));
    return ModelHelper(same_, TextHelper(DrafterId::kNgram));
  }

  // What `drafter` proposes for both texts, with what was drawn from.
  struct Proposed {
    std::vector<Proposal> chains;
    std::vector<std::vector<double>> distributions;
  };
  Proposed Propose(ModelDrafter* drafter, const StagedCase& test) {
    Proposed proposed;
    proposed.chains.resize(kSequences);
    std::vector<DraftDistributions> distributions(kSequences);
    std::vector<DraftContext> contexts;
    for (int i = 0; i < kSequences; ++i) {
      contexts.push_back({.sequence = static_cast<SequenceId>(i),
                          .tokens = texts_[i],
                          .sampling = &sampling_,
                          .history = &histories_[i],
                          .lookahead = kStagedLookahead,
                          .tree_width = 1,
                          .max_nodes = kStagedLookahead,
                          .proposal = &proposed.chains[i],
                          .distributions = test.draws ? &distributions[i] : nullptr});
    }
    drafter->Propose(contexts);
    for (int i = 0; i < kSequences; ++i) {
      std::vector<double>& distribution = proposed.distributions.emplace_back();
      for (int node = 0; node < kStagedLookahead; ++node) {
        for (const TokenProbability& listed : distributions[i].at(node).listed) {
          distribution.push_back(listed.token + listed.probability);
        }
      }
    }
    return proposed;
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend(Precision::kF32);
  std::shared_ptr<Model> first_ = SmallModel(1, backend_.get());
  std::shared_ptr<Model> same_ = SmallModel(1, backend_.get());
  std::shared_ptr<Model> other_ = SmallModel(2, backend_.get());
  SamplingParams sampling_;
  std::vector<std::vector<Token>> texts_{{1, 2, 3}, {4, 5, 6, 7}};
  std::vector<TokenHistory> histories_{TokenHistory(kStagedVocabulary),
                                       TokenHistory(kStagedVocabulary)};
};

TEST_P(Staged, ProposesWhatItsFirstStageProposesAlone) {
  const StagedCase& test = GetParam();
  sampling_.temperature = test.temperature;
  sampling_.seed = 3;
  sampling_.frequency_penalty = 0.2F;  // Histories count, too.
  ModelDrafter alone(DrafterId::kModel, PartsWith(first_));
  ModelDrafter staged(DrafterId::kModel, PartsWith(first_), Helper(test.below), StageWorth(kCheap));
  std::mt19937 random(7);
  const auto below = [&random](int limit) { return static_cast<int>(random() % limit); };
  int length = 0;
  for (int round = 0; round < 40; ++round) {
    const Proposed expected = Propose(&alone, test);
    const Proposed proposed = Propose(&staged, test);
    for (int i = 0; i < kSequences; ++i) {
      ASSERT_EQ(proposed.chains[i].tokens, expected.chains[i].tokens) << "round " << round;
      EXPECT_TRUE(proposed.chains[i].IsChain());
      ASSERT_EQ(proposed.distributions[i], expected.distributions[i]);
      length += proposed.chains[i].size();
      // A part of it comes true, then something else.
      const int right = below(proposed.chains[i].size() + 1);
      for (int j = 0; j <= right; ++j) {
        const bool own = j < right;
        const Token token = own ? proposed.chains[i].tokens[j] : below(kStagedVocabulary);
        if (texts_[i].size() + kStagedLookahead + 1 >= kStagedContext) break;
        texts_[i].push_back(token);
        histories_[i].AddOutput(token);
      }
    }
    if (round == 25) {  // As when it is preempted.
      staged.Forget(1);
      alone.Forget(1);
    }
  }
  EXPECT_EQ(length, 2 * 40 * kStagedLookahead);
  EXPECT_LE(staged.passes(), alone.passes());
  // The same weights guess right wherever they are asked and whatever was taken back.
  if (test.below >= Below::kSame) {
    EXPECT_LE(staged.passes(), 40 + 10);
  }
}

std::vector<StagedCase> Cases() {
  std::vector<StagedCase> cases;
  for (const auto& [name, below] :
       {std::pair("Ngram", Below::kNgram), std::pair("Retrieval", Below::kRetrieval),
        std::pair("Other", Below::kOther), std::pair("Same", Below::kSame),
        std::pair("SameAndNgram", Below::kSameAndNgram),
        std::pair("SameAndSame", Below::kSameAndSame)}) {
    cases.push_back({std::string(name) + "Greedy", below});
    cases.push_back({std::string(name) + "Warm", below, 0.7F});
    cases.push_back({std::string(name) + "Hot", below, 1.3F});
    cases.push_back({std::string(name) + "Drawn", below, 0.7F, /*draws=*/true});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Helpers, Staged, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

// A stage that knows the chain.
class Oracle final : public Stage {
 public:
  explicit Oracle(std::vector<Token> text, bool right) : text_(std::move(text)), right_(right) {}
  void Propose(std::span<DraftContext> contexts) override { ProposeBehind(contexts, {}); }
  void ProposeBehind(std::span<DraftContext> contexts, std::span<const int>) override {
    ++asked_;
    for (DraftContext& context : contexts) {
      context.proposal->Clear();
      const std::size_t begin = context.tokens.size();
      for (int i = 0; i < context.lookahead; ++i) {
        const Token token = begin + i < text_.size() ? text_[begin + i] : 0;
        context.proposal->Extend(right_ ? token : (token + 1) % kStagedVocabulary);
      }
    }
  }
  int asked() const { return asked_; }

 private:
  std::vector<Token> text_;
  bool right_;
  int asked_ = 0;
};

class StagedOracle : public Staged {
 protected:
  // What the model drafts behind `texts_[0]`, round by round, all of it coming true.
  std::vector<Token> Written(ModelDrafter* drafter, int rounds) {
    std::vector<Token> text = texts_[0];
    for (int round = 0; round < rounds; ++round) {
      Proposal chain;
      DraftContext context{.sequence = 1,
                           .tokens = text,
                           .sampling = &sampling_,
                           .history = &histories_[0],
                           .lookahead = kStagedLookahead,
                           .max_nodes = kStagedLookahead,
                           .proposal = &chain};
      drafter->Propose(std::span(&context, 1));
      text.insert(text.end(), chain.tokens.begin(), chain.tokens.end());
    }
    return text;
  }
};

constexpr int kRounds = 18;

TEST_F(StagedOracle, AHelperThatIsRightLeavesAPassForTwoRoundsOrFewer) {
  ModelDrafter alone(DrafterId::kModel, PartsWith(first_));
  const std::vector<Token> text = Written(&alone, kRounds);
  EXPECT_EQ(alone.passes(), kRounds * kStagedLookahead);
  ModelDrafter staged(DrafterId::kModel, PartsWith(first_), std::make_unique<Oracle>(text, true));
  EXPECT_EQ(Written(&staged, kRounds), text);
  EXPECT_LE(staged.passes(), 2 * kRounds);
}

TEST_F(StagedOracle, AHelperThatIsWrongIsSeldomAsked) {
  ModelDrafter alone(DrafterId::kModel, PartsWith(first_));
  const std::vector<Token> text = Written(&alone, kRounds);
  auto oracle = std::make_unique<Oracle>(text, false);
  const Oracle* const asked = oracle.get();
  ModelDrafter staged(DrafterId::kModel, PartsWith(first_), std::move(oracle));
  EXPECT_EQ(Written(&staged, kRounds), text);
  EXPECT_EQ(staged.passes(), kRounds * kStagedLookahead);
  EXPECT_LT(asked->asked(), kRounds * kStagedLookahead / 2);
}

TEST(StageWorth, AsksForWhatGainsAtWhatRowsAndDraftingCost) {
  const auto asks = [](double row, double token, int most) {
    StageWorth worth;
    for (int i = 0; i < 200; ++i) {
      worth.ObservePass(1, 1, 1'000'000);
      worth.ObservePass(1, 5, static_cast<std::int64_t>(1'000'000 * (1 + 4 * row)));
      worth.ObserveAsking(4, static_cast<std::int64_t>(4'000'000 * token));
      worth.ObserveAnswer(4, /*wrong=*/true);  // alpha = 0.8.
    }
    return worth.Ask(most);
  };
  EXPECT_EQ(asks(0.1, 0.1, 30), 7);  // 0.8^7 = 0.21.
  EXPECT_EQ(asks(0.1, 0.1, 3), 3);
  EXPECT_EQ(asks(0.45, 0.05, 30), 3);  // 0.8^3 = 0.51.
  EXPECT_EQ(asks(0.1, 0.9, 30), 0);
  EXPECT_EQ(asks(0.9, 0, 30), 0);  // Rows that cost as much as passes save none.
}

TEST(TextStage, SaysWhatGoesOnOfItsTree) {
  // 1 2 3 was followed by 4 5 6 and, before that, by 7 8.
  const std::vector<Token> text = {1, 2, 3, 7, 8, 9, 1, 2, 3, 4, 5, 6, 9, 1, 2, 3};
  TextStage stage(MakeRetrievalDrafter({}), /*keeps_nothing=*/false, 1);
  SamplingParams sampling;
  const auto behind = [&](std::vector<Token> drafted) {
    std::vector<Token> tokens = text;
    tokens.insert(tokens.end(), drafted.begin(), drafted.end());
    Proposal chain;
    DraftContext context{.sequence = 1,
                         .tokens = tokens,
                         .sampling = &sampling,
                         .lookahead = 2,
                         .max_nodes = 2,
                         .proposal = &chain};
    const int count = drafted.size();
    stage.ProposeBehind(std::span(&context, 1), std::span(&count, 1));
    return std::vector<Token>(chain.tokens.begin(), chain.tokens.end());
  };
  EXPECT_EQ(behind({}).size(), 2);
  EXPECT_EQ(behind({4}), (std::vector<Token>{5, 6}));
  EXPECT_EQ(behind({7, 8}), (std::vector<Token>{9, 1}));
  EXPECT_TRUE(behind({11}).empty());
}

}  // namespace
}  // namespace foretoken
