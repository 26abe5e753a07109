#include "core/draft/ensemble/ensemble_drafter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kEnsembleVocabulary = 30;
constexpr int kEnsembleContext = 700;
constexpr int kEnsembleLookahead = 5;

class EnsembleTest : public testing::Test {
 protected:
  DrafterParts Parts(std::vector<DrafterId> ids) const {
    DrafterParts parts{.vocabulary = kEnsembleVocabulary,
                       .max_sequences = 2,
                       .max_context = kEnsembleContext,
                       .backend = backend_.get()};
    for (const DrafterId id : ids) {
      parts.members.push_back({.id = id, .draft = IsDraftModel(id) ? draft_ : nullptr});
    }
    return parts;
  }

  // Free of charge unless a price is given, so that the clock of this machine does not count.
  EnsembleDrafter Of(const std::vector<DrafterId>& ids, double level_price = 0) const {
    const DrafterParts parts = Parts(ids);
    std::vector<EnsembleMember> members;
    for (const DrafterMember& member : parts.members) {
      members.push_back({.id = member.id, .drafter = MakeDrafter(member.id, parts.Of(member))});
    }
    return {std::move(members), parts.max_sequences, level_price};
  }

  Proposal Propose(Drafter* drafter, std::span<const Token> tokens, int max_nodes,
                   SequenceId sequence = 1, std::span<const double> prices = {}) {
    Proposal proposal;
    DraftContext context{.sequence = sequence,
                         .tokens = tokens,
                         .sampling = &sampling_,
                         .history = &history_,
                         .lookahead = kEnsembleLookahead,
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
    for (; at + kEnsembleLookahead + 1 < text.size(); ++rounds) {
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
    while (text.size() + 40 < kEnsembleContext) {
      const Proposal chain = Propose(drafter.get(), text, kEnsembleLookahead);
      text.insert(text.end(), chain.tokens.begin(), chain.tokens.end());
    }
    return text;
  }
  // What prompt lookup foresees.
  static std::vector<Token> PeriodicText() {
    std::mt19937 random(2);
    std::vector<Token> period(20);
    for (Token& token : period) token = static_cast<Token>(random() % kEnsembleVocabulary);
    std::vector<Token> text;
    while (text.size() + 40 < kEnsembleContext)
      text.insert(text.end(), period.begin(), period.end());
    return text;
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend(Precision::kF32);
  std::shared_ptr<Model> draft_ = SyntheticModel(LlamaConfig({.hidden = 32,
                                                              .intermediate = 64,
                                                              .layers = 1,
                                                              .heads = 4,
                                                              .kv_heads = 2,
                                                              .head_dim = 8,
                                                              .vocabulary = kEnsembleVocabulary,
                                                              .max_positions = kEnsembleContext}),
                                                 1, backend_.get());
  SamplingParams sampling_{.temperature = 1, .seed = 4};
  TokenHistory history_{kEnsembleVocabulary};
};

TEST_F(EnsembleTest, AcceptsWhatTheBetterMemberDoesOnTextsOfEither) {
  for (const auto& text : {OwnText(), PeriodicText()}) {
    double best = 0;
    for (const DrafterId id : {DrafterId::kModel, DrafterId::kNgram}) {
      const DrafterParts parts = Parts({id});
      const auto alone = MakeDrafter(id, parts.Of(parts.members[0]));
      best = std::max(best, AcceptedPerRound(alone.get(), text, kEnsembleLookahead));
    }
    EXPECT_GT(best, 0.8 * kEnsembleLookahead);
    EnsembleDrafter both = Of({DrafterId::kModel, DrafterId::kNgram});
    EXPECT_GT(AcceptedPerRound(&both, text, 2 * kEnsembleLookahead), 0.95 * best);
    // With no more nodes than one member has, its records must tell which one is worth them.
    EnsembleDrafter tight = Of({DrafterId::kModel, DrafterId::kNgram});
    EXPECT_GT(AcceptedPerRound(&tight, text, kEnsembleLookahead), 0.9 * best);
  }
}

TEST_F(EnsembleTest, AMemberThatIsNeverRightIsSeldomAsked) {
  EnsembleDrafter both = Of({DrafterId::kModel, DrafterId::kNgram}, /*level_price=*/0.2);
  const std::vector<Token> text = PeriodicText();
  (void)AcceptedPerRound(&both, text, 2 * kEnsembleLookahead);
  EXPECT_LT(both.asked(0), both.asked(1) / 2);
  EXPECT_GE(both.asked(0), both.asked(1) / 30);  // It may become right again.
}

TEST_F(EnsembleTest, KeepsWithinItsNodesAndPrices) {
  EnsembleDrafter all = Of({DrafterId::kModel, DrafterId::kNgram, DrafterId::kRetrieval});
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

// Says which part of the target's states it is given.
class Probe final : public Drafter {
 public:
  explicit Probe(TapPart* part) : part_(part) {}
  void Propose(std::span<DraftContext> contexts) override {
    for (DraftContext& context : contexts) {
      *part_ = context.taps.part;
      EXPECT_EQ(context.distributions, nullptr);
      context.proposal->Clear();
    }
  }

 private:
  TapPart* part_;
};

TEST_F(EnsembleTest, EachMemberReadsItsOwnPartOfWhatTheTargetKeeps) {
  TapPart first;
  TapPart second;
  std::vector<EnsembleMember> members;
  members.push_back(
      {DrafterId::kModel, {.first = 0, .width = 64}, std::make_unique<Probe>(&first)});
  members.push_back(
      {DrafterId::kModel2, {.first = 64, .width = 32}, std::make_unique<Probe>(&second)});
  EnsembleDrafter both(std::move(members), 1);
  const std::vector<Token> text = {1, 2, 3};
  Proposal tree;
  DraftContext context{.sequence = 1,
                       .tokens = text,
                       .sampling = &sampling_,
                       .taps = {.part = {.first = 128, .width = 96}},
                       .lookahead = 4,
                       .max_nodes = 4,
                       .proposal = &tree};
  both.Propose(std::span(&context, 1));
  EXPECT_EQ(first.first, 128);
  EXPECT_EQ(first.width, 64);
  EXPECT_EQ(second.first, 192);
  EXPECT_EQ(second.width, 32);
}

}  // namespace
}  // namespace foretoken
