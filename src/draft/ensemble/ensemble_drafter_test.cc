#include "draft/ensemble/ensemble_drafter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/allocation_counter_testing.h"
#include "model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kVocabulary = 30;
constexpr int kContext = 700;
constexpr int kLookahead = 5;

class EnsembleTest : public testing::Test {
 protected:
  DrafterParts Parts(std::vector<DrafterId> ids) const {
    DrafterParts parts{.vocabulary = kVocabulary,
                       .max_sequences = 2,
                       .max_context = kContext,
                       .backend = backend_.get()};
    for (const DrafterId id : ids) {
      parts.members.push_back({.id = id, .draft = IsDraftModel(id) ? draft_ : nullptr});
    }
    return parts;
  }

  Proposal Propose(Drafter* drafter, std::span<const Token> tokens, int max_nodes,
                   SequenceId sequence = 1, std::span<const double> prices = {}) {
    Proposal proposal;
    DraftContext context{.sequence = sequence,
                         .tokens = tokens,
                         .sampling = &sampling_,
                         .history = &history_,
                         .lookahead = kLookahead,
                         .max_nodes = max_nodes,
                         .row_prices = prices,
                         .proposal = &proposal};
    drafter->Propose(std::span(&context, 1));
    return proposal;
  }

  // Proposed tokens that come true, and rounds, as `drafter` goes along `text`.
  double AcceptedPerRound(Drafter* drafter, const std::vector<Token>& text, int max_nodes) {
    std::size_t at = 8;
    int rounds = 0;
    int accepted = 0;
    for (; at + kLookahead + 1 < text.size(); ++rounds) {
      const Proposal tree = Propose(drafter, std::span(text).first(at), max_nodes);
      int node = 0;
      while ((node = tree.ChildWith(node, text[at])) != 0) {
        ++at;
        ++accepted;
      }
      ++at;  // The bonus token.
    }
    drafter->Forget(1);
    return static_cast<double>(accepted) / rounds;
  }

  // What the draft writes itself, with the noise of the sampling.
  std::vector<Token> OwnText() {
    const auto drafter = MakeModelDrafter(Parts({DrafterId::kModel}).Of({.draft = draft_}));
    std::vector<Token> text = {3, 1, 4, 1, 5, 9, 2, 6};
    while (text.size() + 40 < kContext) {
      const Proposal chain = Propose(drafter.get(), text, kLookahead);
      text.insert(text.end(), chain.tokens.begin(), chain.tokens.end());
    }
    return text;
  }
  // What prompt lookup foresees.
  static std::vector<Token> PeriodicText() {
    std::mt19937 random(2);
    std::vector<Token> period(20);
    for (Token& token : period) token = static_cast<Token>(random() % kVocabulary);
    std::vector<Token> text;
    while (text.size() + 40 < kContext) text.insert(text.end(), period.begin(), period.end());
    return text;
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend(Precision::kF32);
  std::shared_ptr<Model> draft_ = SyntheticModel(LlamaConfig({.hidden = 32,
                                                              .intermediate = 64,
                                                              .layers = 1,
                                                              .heads = 4,
                                                              .kv_heads = 2,
                                                              .head_dim = 8,
                                                              .vocabulary = kVocabulary,
                                                              .max_positions = kContext}),
                                                 1, backend_.get());
  SamplingParams sampling_{.temperature = 1, .seed = 4};
  TokenHistory history_{kVocabulary};
};

TEST_F(EnsembleTest, AcceptsWhatTheBetterMemberDoesOnTextsOfEither) {
  for (const auto& text : {OwnText(), PeriodicText()}) {
    double best = 0;
    for (const DrafterId id : {DrafterId::kModel, DrafterId::kNgram}) {
      const DrafterParts parts = Parts({id});
      const auto alone = MakeDrafter(id, parts.Of(parts.members[0]));
      best = std::max(best, AcceptedPerRound(alone.get(), text, kLookahead));
    }
    EXPECT_GT(best, 0.8 * kLookahead);
    // Free of charge, so that the clock of this machine does not count.
    EnsembleDrafter both(Parts({DrafterId::kModel, DrafterId::kNgram}), /*level_price=*/0);
    EXPECT_GT(AcceptedPerRound(&both, text, 2 * kLookahead), 0.95 * best);
    // With no more nodes than one member has, its records must tell which one is worth them.
    EnsembleDrafter tight(Parts({DrafterId::kModel, DrafterId::kNgram}), /*level_price=*/0);
    EXPECT_GT(AcceptedPerRound(&tight, text, kLookahead), 0.9 * best);
  }
}

TEST_F(EnsembleTest, AMemberThatIsNeverRightIsSeldomAsked) {
  EnsembleDrafter both(Parts({DrafterId::kModel, DrafterId::kNgram}), /*level_price=*/0.2);
  const std::vector<Token> text = PeriodicText();
  (void)AcceptedPerRound(&both, text, 2 * kLookahead);
  EXPECT_LT(both.asked(0), both.asked(1) / 2);
  EXPECT_GE(both.asked(0), both.asked(1) / 30);  // It may become right again.
}

TEST_F(EnsembleTest, KeepsWithinItsNodesAndPrices) {
  EnsembleDrafter all(Parts({DrafterId::kModel, DrafterId::kNgram, DrafterId::kRetrieval}), 0);
  const std::vector<Token> text = PeriodicText();
  for (const int most : {0, 1, 7, 63}) {
    const Proposal tree = Propose(&all, std::span(text).first(70), most);
    EXPECT_LE(tree.size(), most);
    if (most > 0) {
      EXPECT_EQ(tree.source, ProposalSource::Of(DrafterId::kEnsemble));
    }
    all.Forget(1);
  }
  const std::vector<double> dear = {2};
  EXPECT_EQ(Propose(&all, std::span(text).first(70), 63, 1, dear).size(), 0);
}

TEST_F(EnsembleTest, AllocatesNothingInSteadyState) {
  EnsembleDrafter both(Parts({DrafterId::kNgram, DrafterId::kRetrieval}));
  const std::vector<Token> text = PeriodicText();
  std::size_t at = 300;
  for (; at < 500; ++at) (void)Propose(&both, std::span(text).first(at), 31);
  allocations = 0;
  for (; at < 640; ++at) (void)Propose(&both, std::span(text).first(at), 31);
  EXPECT_EQ(allocations, 0);
}

}  // namespace
}  // namespace foretoken
