// The speculator against an independent drafter: whatever it prepares for an outcome must be what a
// fresh draft model says after that outcome, however its KV came about.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/draft/registry.h"
#include "core/speculation/presets.h"
#include "core/speculation/verify.h"
#include "door/assembly/fit_draft.h"
#include "tests/engine/draft_variant_testing.h"
#include "tests/engine/engine_testing.h"
#include "tests/engine/speculator_testing.h"

namespace foretoken {
namespace {

constexpr int kSpeculatorLookahead = 4;
constexpr int kFanout = 3;
constexpr int kTreeNodes = 9;
constexpr int kSpeculatorContext = 512;

class SpeculatorTest : public testing::TestWithParam<std::tuple<float, int, bool>> {
 protected:
  static float temperature() { return std::get<0>(GetParam()); }
  static int width() { return std::get<1>(GetParam()); }
  // The speculator's draft has its tokens under other ids than the one it is held to.
  static bool renumbered() { return std::get<2>(GetParam()); }

  void SetUp() override {
    plan_.tree_width = width();
    plan_.max_nodes = kTreeNodes;
    auto draft = LoadModel({.path = BundledModel("demo-draft")},
                           std::make_shared<Device>(CoreSet{DraftCore()}), Precision::kBF16);
    ASSERT_TRUE(draft.ok());
    draft_ = std::move(draft).value();
    truth_ = OnDevice(*draft_, std::make_shared<Device>(CoreSet{TargetCore()}));
    if (renumbered()) {
      const DraftVariant variant(DraftVariant::Reversed());
      const auto fitted = FitDraft(truth_->model->config(), truth_->tokenizer,
                                   OpenModel({.path = variant.path()}).value());
      ASSERT_TRUE(fitted.ok()) << fitted.error().message;
      draft_ = LoadModel(*fitted, draft_->device, Precision::kBF16).value();
    }
    client_ = StartTestSpeculator(
        draft_->model.get(), draft_->device.get(),
        ConfigureMessage{
            .max_lookahead = kSpeculatorLookahead,
            .max_nodes = plan_.nodes(),
            .max_cache_budget = width() == 1 ? kFanout * (kSpeculatorLookahead + 1) : 100,
            .max_sequences = 4,
            .max_context = kSpeculatorContext});
    sampling_.temperature = temperature();
    sampling_.seed = 77;
    if (temperature() > 1) sampling_.repetition_penalty = 1.2F;
  }

  void Open(SequenceId sequence, const std::vector<Token>& tokens) {
    client_->Open({.sequence = sequence,
                   .tokens = tokens,
                   .prompt_tokens = static_cast<std::int32_t>(prompt_tokens_),
                   .sampling = &sampling_,
                   .plan = &plan_,
                   .stop_tokens = {}});
  }

  // What a draft model without history says after `tokens` and after every node of a tree below
  // them.
  std::vector<Ranking> RankingsOf(const std::vector<Token>& tokens, const Proposal& tree) {
    DraftModel draft(truth_->model.get(), 1, kSpeculatorContext, 0);
    TokenHistory history(truth_->model->config().vocabulary);
    history.AddPrompt(std::span<const Token>(tokens).first(prompt_tokens_));
    for (std::size_t i = prompt_tokens_; i < tokens.size(); ++i) history.AddOutput(tokens[i]);
    DraftTrunk trunk;
    trunk.Commit(tokens, draft);
    trunk.tree.Assign(tree);
    EXPECT_TRUE(trunk.Reserve(kSpeculatorContext, draft));
    RowPlacer placer = draft.PlacerFor(trunk.kv);
    trunk.AppendCommittedRows(kSpeculatorContext, &placer, &draft.batch);
    for (int node = 1; node <= tree.size(); ++node) {
      trunk.AppendNodeRow(node, &placer, &draft.batch);
    }
    Logits logits = truth_->model->Forward(draft.batch, draft.kv.store());
    std::vector<Ranking> rankings;
    for (int node = 0; node <= tree.size(); ++node) {
      const auto path = PathTokens(tree, node);
      rankings.push_back(RankRow(
          draft, {.logits = logits, .confidence = {}}, sampling_, history,
          {.root = tokens.size() - 1, .path = path, .children = 0, .candidates = kMaxRanking}));
      logits = logits.Row(1, truth_->model->config().vocabulary);
    }
    return rankings;
  }

  // The chain that a drafter proposes after `tokens`.
  std::vector<Token> Expected(const std::vector<Token>& tokens, int count) {
    const auto drafter =
        MakeModelDrafter({.max_sequences = 1,
                          .max_context = kSpeculatorContext,
                          .draft = std::shared_ptr<Model>(truth_, truth_->model.get())});
    TokenHistory history(truth_->model->config().vocabulary);
    history.AddPrompt(std::span<const Token>(tokens).first(prompt_tokens_));
    for (std::size_t i = prompt_tokens_; i < tokens.size(); ++i) history.AddOutput(tokens[i]);
    Proposal proposal;
    DraftContext context{.sequence = 1,
                         .tokens = tokens,
                         .sampling = &sampling_,
                         .history = &history,
                         .lookahead = count,
                         .max_nodes = count,
                         .proposal = &proposal};
    drafter->Propose(std::span(&context, 1));
    return {proposal.tokens.begin(), proposal.tokens.end()};
  }

  // A prepared proposal must have, at every node, the draft's best tokens in their order.
  void CheckProposal(const std::vector<Token>& tokens, const Proposal& proposal,
                     const std::string& what) {
    EXPECT_EQ(proposal.size(), plan_.nodes()) << what;
    if (width() == 1) {
      EXPECT_EQ(std::vector<Token>(proposal.tokens.begin(), proposal.tokens.end()),
                Expected(tokens, kSpeculatorLookahead))
          << what;
      EXPECT_TRUE(proposal.IsChain());
      return;
    }
    const std::vector<Ranking> rankings = RankingsOf(tokens, proposal);
    std::vector<int> children(proposal.size() + 1, 0);
    for (int i = 0; i < proposal.size(); ++i) {
      const int parent = proposal.parents[i];
      EXPECT_EQ(proposal.tokens[i], rankings[parent][children[parent]++].token)
          << what << ", node " << i + 1 << " below " << parent;
      EXPECT_LE(children[parent], width());
      EXPECT_LE(proposal.Depth(i + 1), kSpeculatorLookahead);
    }
  }

  // Waits until every outcome of `proposal` is prepared to the full size.
  std::vector<CacheAnswer> AwaitBranches(SequenceId sequence, const Proposal& proposal) {
    const std::int64_t deadline = NowNs() + 20'000'000'000;
    std::vector<CacheAnswer> branches;
    while (NowNs() < deadline) {
      client_->Poll();
      branches.clear();
      bool full = true;
      for (int node = 0; node <= proposal.size(); ++node) {
        std::vector<Token> bonuses;
        client_->PreparedAt(sequence, node, &bonuses);
        full = full && bonuses.size() == kFanout;
        for (const Token bonus : bonuses) {
          branches.push_back(client_->Lookup(sequence, {node, bonus}));
          full = full && branches.back().proposal.size() == plan_.nodes();
        }
      }
      if (full) return branches;
    }
    ADD_FAILURE() << "only " << branches.size() << " branches after 20 s";
    return branches;
  }

  // Every branch must continue committed + accepted + bonus as the draft model would, and begin
  // with a token that the draft ranks high and the proposal does not have.
  void CheckBranches(const std::vector<CacheAnswer>& branches, const std::vector<Token>& committed,
                     const Proposal& proposal) {
    const std::vector<Ranking> rankings = RankingsOf(committed, proposal);
    for (const CacheAnswer& branch : branches) {
      const auto [node, bonus] = branch.outcome;
      std::vector<Token> path = committed;
      for (const Token token : PathTokens(proposal, node)) path.push_back(token);
      path.push_back(bonus);
      CheckProposal(path, branch.proposal, fmt::format("outcome ({}, {})", node, bonus));
      EXPECT_EQ(proposal.ChildWith(node, bonus), 0);
      int better = 0;
      for (const RankedToken& ranked : rankings[node]) {
        if (ranked.token == bonus) break;
        better += proposal.ChildWith(node, ranked.token) == 0;
      }
      EXPECT_LT(better, kFanout);
    }
  }

  void Send(SequenceId sequence, Outcome outcome, const std::vector<Token>& committed,
            const Proposal& next, bool jit = false) {
    client_->SendOutcome(sequence, outcome, committed, next, plan_, jit);
  }

  std::unique_ptr<LoadedModel> draft_;
  std::shared_ptr<LoadedModel> truth_;
  std::unique_ptr<SpeculatorClient> client_;
  SamplingParams sampling_;
  SpeculationPlan plan_{.mode = Mode::kSsd,
                        .lookahead = kSpeculatorLookahead,
                        .primary = UniformFanout(kFanout, kSpeculatorLookahead),
                        .after_fallback = UniformFanout(kFanout, kSpeculatorLookahead)};
  std::size_t prompt_tokens_ = 0;
};

TEST_P(SpeculatorTest, PreparesWhatAFreshDraftWouldSay) {
  std::vector<Token> committed = StoryPrompts()[0];
  prompt_tokens_ = committed.size();
  Open(7, committed);
  Proposal proposal;
  for (int round = 0; round < (width() == 1 ? 12 : 8); ++round) {
    const auto branches = AwaitBranches(7, proposal);
    ASSERT_FALSE(branches.empty());
    CheckBranches(branches, committed, proposal);
    // Hits at every node in turn, and every fourth time a miss with a foreign proposal.
    Proposal next;
    Outcome outcome;
    if (round % 4 == 3) {
      outcome = {static_cast<std::int32_t>(proposal.size()) / 2, 1000 + round};
      next.source = ProposalSource::kNgram;
      for (const Token token : {500, 501, 502}) next.Extend(token);
      // A tree, as retrieval makes them, where the plan has trees.
      if (width() > 1) next.Append(1, 503);
    } else {
      const CacheAnswer& taken = branches[(round * 5) % branches.size()];
      outcome = taken.outcome;
      // The engine may have taken less than what was prepared by now.
      next = taken.proposal;
      if (round % 2 != 0) next.Prune(2, 5);
    }
    std::vector<Token> emitted;
    for (const Token token : PathTokens(proposal, outcome.node)) emitted.push_back(token);
    emitted.push_back(outcome.bonus);
    Send(7, outcome, emitted, next);
    committed.insert(committed.end(), emitted.begin(), emitted.end());
    proposal = next;
  }
}

TEST_P(SpeculatorTest, DraftsJustInTime) {
  std::vector<Token> committed = StoryPrompts()[1];
  prompt_tokens_ = committed.size();
  Open(3, committed);
  Proposal proposal;
  for (int round = 0; round < 4; ++round) {
    AwaitBranches(3, proposal);
    const Outcome outcome{proposal.size() / 2, 900 + round};
    std::vector<Token> emitted;
    for (const Token token : PathTokens(proposal, outcome.node)) emitted.push_back(token);
    emitted.push_back(outcome.bonus);
    Send(3, outcome, emitted, {}, /*jit=*/true);
    committed.insert(committed.end(), emitted.begin(), emitted.end());
    const std::int64_t deadline = NowNs() + 20'000'000'000;
    while (!client_->TakeProposal(3, &proposal)) {
      ASSERT_LT(NowNs(), deadline);
      client_->Wait(1'000'000);
      client_->Poll();
    }
    CheckProposal(committed, proposal, "just in time");
    EXPECT_EQ(proposal.source, ProposalSource::kJit);
    CheckBranches(AwaitBranches(3, proposal), committed, proposal);
  }
}

TEST_P(SpeculatorTest, SequencesDoNotDisturbEachOther) {
  const auto prompts = StoryPrompts();
  prompt_tokens_ = 4;
  for (SequenceId i = 0; i < 4; ++i) Open(i + 1, prompts[i]);
  for (SequenceId i = 0; i < 4; ++i) CheckBranches(AwaitBranches(i + 1, {}), prompts[i], {});
  // A closed and reopened sequence starts afresh.
  client_->Close(2);
  Open(2, prompts[4]);
  CheckBranches(AwaitBranches(2, {}), prompts[4], {});
  CheckBranches(AwaitBranches(3, {}), prompts[2], {});
}

// Outcomes interrupt passes: contexts must be read although no pass over them fits between two.
TEST_P(SpeculatorTest, ReadsContextsThoughOutcomesKeepComing) {
  constexpr int kSequences = 4;
  constexpr int kCommitted = 300;
  std::vector<Token> committed;
  while (committed.size() < kCommitted)
    committed.push_back(StoryPrompts()[0][0] + committed.size());
  prompt_tokens_ = committed.size();
  int prepared = 0;
  const auto count_prepared = [&](SequenceId first) {
    client_->Poll();
    prepared = 0;
    for (int i = 0; i < kSequences; ++i) prepared += client_->Lookup(first + i, {}).any ? 1 : 0;
  };
  const std::int64_t start = NowNs();
  const std::int64_t deadline = start + 20'000'000'000;
  for (int i = 0; i < kSequences; ++i) Open(1 + i, committed);
  while (prepared < kSequences && NowNs() < deadline) count_prepared(1);
  const std::int64_t reading_ns = NowNs() - start;
  for (int i = 0; i < kSequences; ++i) client_->Close(1 + i);

  for (int i = 0; i < kSequences; ++i) Open(11 + i, committed);
  prepared = 0;
  for (int round = 0; round < kSpeculatorContext - kCommitted - 1 && prepared < kSequences;
       ++round) {
    const std::int64_t next = NowNs() + reading_ns / 6;
    while (NowNs() < next) count_prepared(11);
    for (int i = 0; i < kSequences; ++i) Send(11 + i, {0, 300}, {300}, {});
  }
  EXPECT_EQ(prepared, kSequences);
}

// Which outcomes of a chain under verification each preset prepares for.
TEST_P(SpeculatorTest, PresetsPrepareWhatTheySay) {
  if (width() != 1) GTEST_SKIP() << "a preset has its own width";
  prompt_tokens_ = 4;
  SequenceId sequence = 0;
  for (const SsdPreset preset : kSsdPresets) {
    if (preset == SsdPreset::kSwiftSpec) continue;  // Trees: the tests above.
    plan_ = PresetPlan(preset, kSpeculatorLookahead);
    Open(++sequence, StoryPrompts()[0]);
    Proposal chain;
    for (int token = 500; token < 500 + kSpeculatorLookahead; ++token) chain.Extend(token);
    Send(sequence, {0, 300}, {300}, chain);
    std::vector<Token> bonuses;
    const auto prepared_at = [&](int node) {
      client_->Poll();
      client_->PreparedAt(sequence, node, &bonuses);
      return Int(bonuses.size());
    };
    const std::int64_t deadline = NowNs() + 20'000'000'000;
    const auto complete = [&] {
      return prepared_at(kSpeculatorLookahead) == plan_.primary.at[kSpeculatorLookahead] &&
             client_->Lookup(sequence, {kSpeculatorLookahead, bonuses.back()}).proposal.size() ==
                 kSpeculatorLookahead;
    };
    while (!complete()) ASSERT_LT(NowNs(), deadline) << SsdPresetName(preset);
    for (int node = 0; node < kSpeculatorLookahead; ++node) {
      EXPECT_EQ(prepared_at(node), plan_.primary.at[node]) << SsdPresetName(preset) << node;
    }
  }
}

// Nothing may have been found to propose: then there is one outcome node for the whole budget.
TEST_P(SpeculatorTest, AnEmptyProposalGetsTheWholeBudget) {
  if (width() != 1) GTEST_SKIP() << "budgets are handed out along chains";
  constexpr int kBudget = 9;
  plan_.primary = plan_.after_fallback = EvenFanout(kBudget, kSpeculatorLookahead);
  ASSERT_LE(plan_.primary.at.back(), 2);
  Open(1, StoryPrompts()[0]);
  Send(1, {0, 300}, {300}, {});
  std::vector<Token> bonuses;
  const std::int64_t deadline = NowNs() + 20'000'000'000;
  while (bonuses.size() < kBudget) {
    ASSERT_LT(NowNs(), deadline) << bonuses.size();
    client_->Poll();
    client_->PreparedAt(1, 0, &bonuses);
  }
  EXPECT_EQ(bonuses.size(), kBudget);
}

TEST_P(SpeculatorTest, PreparesForWhatRetrievalExpectsToo) {
  const std::vector<Token> committed = StoryPrompts()[0];
  prompt_tokens_ = committed.size();
  Open(7, committed);
  AwaitBranches(7, {});
  const Ranking ranking = RankingsOf(committed, {})[0];
  Proposal next;
  next.Extend(ranking[0].token);
  Send(7, {0, ranking[1].token}, {ranking[1].token}, next);
  std::vector<Token> path = committed;
  path.push_back(ranking[1].token);
  const Ranking draft = RankingsOf(path, next)[0];
  Token foreign = 1000;  // One that the draft would not come upon.
  while (RankOf(draft, foreign) >= 0) ++foreign;
  OutcomeList expected;
  expected.push_back({{0, foreign}, 1});
  client_->SendRetrieved(7, expected);

  CacheAnswer prepared;
  const std::int64_t deadline = NowNs() + 20'000'000'000;
  while (NowNs() < deadline && (!prepared.hit || prepared.proposal.size() < plan_.nodes())) {
    client_->Poll();
    prepared = client_->Lookup(7, {0, foreign});
  }
  ASSERT_TRUE(prepared.hit);
  std::vector<Token> bonuses;
  client_->PreparedAt(7, 0, &bonuses);
  const Token own = draft[draft[0].token == next.tokens[0] ? 1 : 0].token;
  EXPECT_THAT(bonuses, testing::IsSupersetOf({own, foreign}));  // Either source has its share.
  path.push_back(foreign);
  CheckProposal(path, prepared.proposal, "what retrieval expects");
}

INSTANTIATE_TEST_SUITE_P(TemperaturesAndWidths, SpeculatorTest,
                         testing::Combine(testing::Values(0.0F, 1.0F, 1.3F), testing::Values(1, 3),
                                          testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(Renumbered, SpeculatorTest,
                         testing::Combine(testing::Values(1.3F), testing::Values(1, 3),
                                          testing::Values(true)));

}  // namespace
}  // namespace foretoken
