#include <gtest/gtest.h>

#include <random>

#include "base/allocation_counter_testing.h"
#include "core/draft/registry.h"
#include "core/draft/retrieval/retriever.h"

namespace foretoken {
namespace {

TEST(Retriever, AllocatesNothingInSteadyState) {
  std::mt19937 random(1);
  std::vector<std::shared_ptr<const Segment>> segments;
  for (int s = 0; s < 2; ++s) {
    TokenText text(100'000);
    for (int d = 0; d < 50; ++d) {
      std::vector<Token> document(400);
      for (Token& token : document) token = static_cast<Token>(random() % 30);
      ASSERT_TRUE(text.Append(document).ok());
    }
    segments.push_back(Segment::Build(std::move(text), 1));
  }
  InputTrie input(500);
  std::vector<Token> context;
  context.reserve(10'000);
  Retriever retriever;
  Proposal proposal;
  const auto step = [&] {
    context.push_back(static_cast<Token>(random() % 30));
    input.Append(context.back());
    retriever.Propose(&input, segments, context, 32, &proposal);
  };
  for (int i = 0; i < 2000; ++i) step();
  allocations = 0;
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(proposal.size(), 31);
}

TEST(Ensemble, AllocatesNothingInSteadyState) {
  const auto drafter =
      MakeEnsembleDrafter({.vocabulary = 30,
                           .max_sequences = 1,
                           .max_context = 4000,
                           .members = {{.id = DrafterId::kNgram}, {.id = DrafterId::kRetrieval}}});
  std::vector<Token> text;
  for (int i = 0; i < 4000; ++i) text.push_back(static_cast<Token>(i % 19 + i % 3));
  const SamplingParams sampling;
  Proposal proposal;
  const auto propose = [&](std::size_t tokens) {
    DraftContext context{.sequence = 1,
                         .tokens = std::span(text).first(tokens),
                         .sampling = &sampling,
                         .lookahead = 31,
                         .max_nodes = 31,
                         .proposal = &proposal};
    drafter->Propose(std::span(&context, 1));
  };
  std::size_t tokens = 1000;
  for (; tokens < 2000; ++tokens) propose(tokens);
  allocations = 0;
  for (; tokens < 3000; ++tokens) propose(tokens);
  EXPECT_EQ(allocations, 0);
  EXPECT_GT(proposal.size(), 8);
}

// Drafters that follow a sequence by an index of its text: those of ended ones are used again.
class FollowingDrafter : public testing::TestWithParam<DrafterId> {};

TEST_P(FollowingDrafter, AllocatesNothingInSteadyState) {
  const auto drafter = MakeDrafter(GetParam(), {.vocabulary = 30});
  std::mt19937 random(1);
  Proposal proposal;
  std::vector<Token> tokens;
  tokens.reserve(4000);
  const auto decode = [&](SequenceId sequence, std::size_t length) {
    while (tokens.size() < length) {
      tokens.push_back(static_cast<Token>(random() % 30));
      DraftContext context = {.sequence = sequence,
                              .tokens = tokens,
                              .lookahead = 8,
                              .max_nodes = 8,
                              .proposal = &proposal};
      drafter->Propose(std::span(&context, 1));
    }
  };
  for (SequenceId sequence = 1; sequence <= 2; ++sequence) {
    tokens.clear();
    decode(sequence, 4000);
    drafter->Forget(sequence);
  }
  tokens.clear();
  decode(3, 1);
  allocations = 0;
  decode(3, 2000);
  EXPECT_EQ(allocations, 0);
  EXPECT_GT(proposal.size(), 0);
}

INSTANTIATE_TEST_SUITE_P(Registry, FollowingDrafter,
                         testing::Values(DrafterId::kAnpd, DrafterId::kSuffix, DrafterId::kRacer),
                         [](const auto& test) { return std::string(InfoOf(test.param).name); });

}  // namespace
}  // namespace foretoken
