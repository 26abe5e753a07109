#include "core/draft/registry.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace foretoken {
namespace {

const DrafterParts kParts{.vocabulary = 8,
                          .max_sequences = 2,
                          .max_context = 64,
                          .members = {{.id = DrafterId::kNgram}, {.id = DrafterId::kRetrieval}}};

// What every drafter that needs no draft model must hold to, whatever it proposes.
class EveryDrafter : public testing::TestWithParam<DrafterId> {
 protected:
  Proposal Propose(SequenceId sequence, const std::vector<Token>& tokens, int lookahead,
                   DraftDistributions* distributions) {
    Proposal proposal;
    proposal.Extend(7);  // The proposal of the round before.
    DraftContext context{.sequence = sequence,
                         .tokens = tokens,
                         .sampling = &sampling_,
                         .lookahead = lookahead,
                         .max_nodes = lookahead,
                         .proposal = &proposal,
                         .distributions = distributions};
    drafter_->Propose(std::span(&context, 1));
    return proposal;
  }

  const std::vector<Token> loop_ = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3};
  SamplingParams sampling_;
  const std::unique_ptr<Drafter> drafter_ = MakeDrafter(GetParam(), kParts);
};

TEST_P(EveryDrafter, StaysWithinWhatItIsGiven) {
  for (const int lookahead : {0, 1, 5}) {
    const Proposal proposal = Propose(1, loop_, lookahead, nullptr);
    EXPECT_LE(proposal.size(), lookahead);
    for (const Token token : proposal.tokens) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, kParts.vocabulary);
    }
    if (proposal.size() > 0) {
      EXPECT_NE(proposal.source, ProposalSource::kNone);
    }
  }
}

TEST_P(EveryDrafter, SetsDistributionsOnlyWhereItsEntrySaysSo) {
  DraftDistributions distributions;
  const Proposal proposal = Propose(1, loop_, 4, &distributions);
  bool any = false;
  for (int node = 0; node <= proposal.size(); ++node) {
    any = any || distributions.at(node).kind != DraftDistribution::Kind::kPoint;
  }
  EXPECT_EQ(any, InfoOf(GetParam()).distribution == ProposalDistribution::kDrawn);
}

TEST_P(EveryDrafter, IdenticalTextsGetIdenticalProposals) {
  const Proposal first = Propose(1, loop_, 4, nullptr);
  drafter_->Forget(1);
  const Proposal again = Propose(1, loop_, 4, nullptr);
  EXPECT_EQ(first.tokens, again.tokens);
}

std::vector<DrafterId> WithoutModel() {
  std::vector<DrafterId> ids;
  for (const DrafterId id : kDrafterIds) {
    const bool of_models = IsDraftModel(id) || id == DrafterId::kStaged;
    if (!of_models) ids.push_back(id);
  }
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryDrafter, testing::ValuesIn(WithoutModel()),
                         [](const auto& test) { return std::string(InfoOf(test.param).name); });

TEST(Registry, NamesTellDraftersAndModesApart) {
  std::set<std::string_view> drafters;
  for (const DrafterInfo& info : kDrafters) EXPECT_TRUE(drafters.insert(info.name).second);
  std::set<std::string_view> modes;
  for (const Mode mode : kModes) {
    EXPECT_TRUE(modes.insert(ModeName(mode)).second);
    EXPECT_EQ(*ParseMode(ModeName(mode)), mode);
    EXPECT_EQ(kModes[IndexOf(mode)], mode);
  }
  for (const Fallback fallback : kFallbacks) {
    EXPECT_EQ(*ParseFallback(FallbackName(fallback)), fallback);
  }
}

TEST(Registry, DraftModelsAreNumberedInItsOrder) {
  EXPECT_EQ(kDraftModels.front(), DrafterId::kModel);
  for (std::size_t i = 0; i < kDraftModels.size(); ++i) {
    EXPECT_TRUE(IsDraftModel(kDraftModels[i]));
    EXPECT_EQ(DraftIndex(kDraftModels[i]), i);
  }
}

TEST(Registry, WhatNoDrafterDoesIsNoMode) {
  const Mode none{Schedule::kDuring, DrafterId::kNgram};
  EXPECT_EQ(IndexOf(none), kModeCount);
  EXPECT_EQ(ModeName(none), "?");
}

}  // namespace
}  // namespace foretoken
