#include "core/engine/round/auto_planning.h"

#include <gtest/gtest.h>

#include <utility>

#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

class AutoPlanningTest : public testing::Test {
 protected:
  AutoPlanningTest() {
    CostModel costs;
    costs.target = TimeTable::Line(100, 1);
    PlannerSettings settings;
    settings.limits.modes = {};
    settings.limits.modes.push_back(Mode::kAr);
    planning_.emplace(costs, settings);
    running_.push_back(DecodingSequence(1, {1, 2, 3}, {.mode = Mode::kAuto}));
    running_[0]->estimate.emplace();
    planning_->MakeFirstPlan(running_, running_[0].get());
    round_.pass = {running_[0].get()};
    round_.rows = 1;
    round_.pass_ns = 100'000;
  }
  std::int64_t RoundsSeen() const { return planning_->Report().modes[Mode::kAr].rounds; }

  std::optional<AutoPlanning> planning_;
  RunningSet running_;
  Round round_;
};

TEST_F(AutoPlanningTest, NamesAModeFromWhatIsOffered) {
  EXPECT_EQ(running_[0]->plan.mode, Mode::kAr);
}

TEST_F(AutoPlanningTest, OneOfFourPlainShortRoundsStandsForAll) {
  running_[0]->emitted.push_back(1);
  const std::int64_t short_ns = std::exchange(round_.pass_ns, 1'000'000);
  for (int i = 0; i < 2; ++i) planning_->Consult(round_, running_);
  const std::int64_t before = RoundsSeen();
  EXPECT_GT(before, 0);  // Long enough to learn from each.
  round_.pass_ns = short_ns;
  for (int i = 0; i < 3; ++i) planning_->Consult(round_, running_);
  EXPECT_EQ(RoundsSeen(), before);
  planning_->Consult(round_, running_);
  EXPECT_GT(RoundsSeen(), before);
}

TEST_F(AutoPlanningTest, RoundsThatPrefillTeachNothingOfPasses) {
  round_.pass_ns = 1'000'000;
  round_.prefills = true;
  planning_->Consult(round_, running_);
  EXPECT_EQ(RoundsSeen(), 0);
}

TEST(WhatCameTrue, IsThePathThatTheTextTook) {
  Proposal chain;
  for (const Token token : {5, 6, 7}) chain.Extend(token);
  ProposalObservation seen = WhatCameTrue(DrafterId::kEnsemble, chain, std::vector<Token>{5, 6, 9});
  EXPECT_EQ(seen.source, ProposalSource::Of(DrafterId::kEnsemble));
  EXPECT_EQ(seen.mode, (Mode{Schedule::kBefore, DrafterId::kEnsemble}));
  EXPECT_EQ(seen.accepted, 2);
  EXPECT_EQ(seen.proposed, 3);
  EXPECT_EQ(seen.rows, 3);
  chain.Append(0, 8);  // A second branch: only how deep it goes is known.
  seen = WhatCameTrue(DrafterId::kEnsemble, chain, std::vector<Token>{8, 1});
  EXPECT_EQ(seen.accepted, 1);
  EXPECT_EQ(seen.proposed, 2);
  EXPECT_EQ(seen.rows, 4);
  seen = WhatCameTrue(DrafterId::kEnsemble, {}, std::vector<Token>{8, 1});
  EXPECT_EQ(seen.source, ProposalSource::kNone);
  EXPECT_EQ(seen.proposed, 0);
}

// Says what it is asked to, and for how many.
class Parrot final : public Drafter {
 public:
  explicit Parrot(std::vector<std::size_t>* asked) : asked_(asked) {}
  void Propose(std::span<DraftContext> contexts) override {
    asked_->push_back(contexts.size());
    for (DraftContext& context : contexts) {
      context.proposal->Clear();
      context.proposal->Extend(context.tokens.back());
      context.proposal->source = ProposalSource::Of(DrafterId::kEnsemble);
    }
  }

 private:
  std::vector<std::size_t>* asked_;
};

// While plain decoding is the mode, it becomes known what texts would give.
TEST(AutoPlanning, LearnsOfTextsFromShadowProposals) {
  CostModel costs;
  costs.target = TimeTable::Line(100, 1);
  PlannerSettings settings;
  settings.limits.modes = {Mode::kAr, {Schedule::kBefore, DrafterId::kEnsemble}};
  settings.shadow_drafter = DrafterId::kEnsemble;
  AutoPlanning planning(costs, settings);
  std::vector<std::size_t> asked;
  DraftersById before;
  before[DrafterId::kEnsemble] = std::make_unique<Parrot>(&asked);
  Drafters drafters(std::move(before), RetrievalBudget({}, 12), nullptr, {}, 20, 2);
  RunningSet running;
  for (const SequenceId id : {1, 2}) {
    running.push_back(DecodingSequence(id, {7, 7}, {.mode = Mode::kAuto}));
    planning.MakeFirstPlan(running, running.back().get());
    running.back()->plan = {};
  }
  for (int round = 0; round < 640; ++round) {
    planning.ProposeShadow(running, &drafters);
    for (const auto& sequence : running) {
      sequence->tokens.push_back(sequence->id == 1 ? 7 : round % 20);
      sequence->kv.committed = static_cast<std::int32_t>(sequence->tokens.size()) - 1;
      EXPECT_EQ(sequence->proposal.size(), 0);
    }
  }
  EXPECT_EQ(asked, std::vector<std::size_t>(40, 1));  // The two take turns.
  const ProposerModel known = planning.Learned().proposers[DrafterId::kEnsemble];
  EXPECT_GT(known.coverage, 0.9);
  EXPECT_NEAR(known.acceptance[0], 0.5, 0.1);  // One of the two repeats itself.
  // One for which it drafts gets no shadow proposals.
  running[1]->plan.mode = {Schedule::kBefore, DrafterId::kEnsemble};
  for (int round = 0; round < 32; ++round) planning.ProposeShadow(running, &drafters);
  EXPECT_EQ(asked.size(), 41);
}

TEST(LoadOf, TakesMeansOverTheRunningSet) {
  RunningSet running;
  running.push_back(DecodingSequence(1, {1, 2}));
  running.push_back(DecodingSequence(2, {1, 2, 3, 4}));
  const Workload load = LoadOf(running);
  EXPECT_EQ(load.batch, 2);
  EXPECT_EQ(load.context, 3);
  EXPECT_EQ(load.tokens_left, 8);
  EXPECT_EQ(LoadOf({}).batch, 1);
}

}  // namespace
}  // namespace foretoken
