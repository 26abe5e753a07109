#include "core/draft/retrieval/retriever.h"

#include <gtest/gtest.h>

#include "core/draft/rest/rest_drafter.h"
#include "core/draft/retrieval/retrieval_drafter.h"
#include "core/draft/retrieval/speculation_length.h"
#include "core/draft/trie/trie_drafter.h"

namespace foretoken {
namespace {

using Segments = std::vector<std::shared_ptr<const Segment>>;
using Documents = std::vector<std::vector<Token>>;

std::shared_ptr<const Segment> BuildSegment(const Documents& documents, int vocabulary) {
  TokenText text(vocabulary);
  for (const auto& document : documents) EXPECT_TRUE(text.Append(document).ok());
  return Segment::Build(std::move(text), 1);
}

std::vector<Token> TokensOfProposal(const Proposal& proposal) {
  return {proposal.tokens.begin(), proposal.tokens.end()};
}
std::vector<int> Parents(const Proposal& proposal) {
  return {proposal.parents.begin(), proposal.parents.end()};
}

TEST(SpeculationLength, FollowsTheRule) {
  EXPECT_EQ(SpeculationLength(174, 8), 20);  // The paper's example: 22, rounded down.
  EXPECT_EQ(SpeculationLength(1000, 1), 32);
  EXPECT_EQ(SpeculationLength(16, 1), 16);
  EXPECT_EQ(SpeculationLength(16, 2), 8);
  EXPECT_EQ(SpeculationLength(16, 3), 5);
  EXPECT_EQ(SpeculationLength(16, 16), 2);
  for (int batch = 1; batch < 64; ++batch) {
    EXPECT_GE(SpeculationLength(100, batch), SpeculationLength(100, batch + 1));
  }
}

TEST(SpeculationLength, KneeOfMeasuredPasses) {
  const std::vector<int> rows = {1, 2, 4, 8, 16};
  EXPECT_EQ(KneeRows(rows, std::vector<double>{100, 100, 110, 120, 125}), 16);  // None was seen.
  EXPECT_EQ(KneeRows(rows, std::vector<double>{100, 100, 100, 120, 160}), 9);
  EXPECT_EQ(KneeRows(rows, std::vector<double>{100, 200, 400, 800, 1600}), 1);
  EXPECT_EQ(KneeRows(rows, std::vector<double>{100, 190, 100, 120, 160}), 9);  // A disturbance.
}

TEST(SpeculationLength, BranchesOfThePaper) {
  EXPECT_EQ(BranchLength(2), 1);
  EXPECT_EQ(BranchLength(5), 4);
  EXPECT_EQ(BranchLength(6), 5);
  EXPECT_EQ(BranchLength(8), 5);
  EXPECT_EQ(BranchLength(32), 6);
  EXPECT_EQ(BranchLength(48), 8);
  EXPECT_EQ(BranchLength(64), 10);
}

// Two sources by hand. A: x 0.75 (below it: y 2/3, z 1/3), w 0.25. B, scaled by 0.5 and discounted
// by 0.8: x 0.5 (below it: u 1).
TEST(CandidateFusion, MergesByProbability) {
  TokenTree a;
  TokenTree b;
  const auto add = [](TokenTree* tree, std::initializer_list<Token> path, int times) {
    for (int i = 0; i < times; ++i) {
      tree->Count(0);
      std::uint32_t node = 0;
      for (const Token token : path) {
        node = tree->FindOrAdd(node, token);
        tree->Count(node);
      }
    }
  };
  enum : Token { x = 10, y, z, w, u };
  add(&a, {x, y}, 6);
  add(&a, {x, z}, 3);
  add(&a, {w}, 3);
  add(&b, {x, u}, 4);
  const std::vector<CandidateSource> sources = {{&a, 0, 1.0, 1.0}, {&b, 0, 0.5, 0.8}};
  CandidateFusion fusion;
  Proposal proposal;
  fusion.Fuse(sources, 10, &proposal);
  // x 0.75; y 0.5 (the first pop of B's x, also 0.5 but shallower, adds nothing but its child);
  // u 0.5 * 1 * 0.8 = 0.4; then z 0.25 and w 0.25, the shallower first.
  EXPECT_EQ(TokensOfProposal(proposal), (std::vector<Token>{x, y, u, w, z}));
  EXPECT_EQ(Parents(proposal), (std::vector<int>{0, 1, 1, 0, 1}));
  fusion.Fuse(sources, 2, &proposal);
  EXPECT_EQ(TokensOfProposal(proposal), (std::vector<Token>{x, y}));
  fusion.Fuse({}, 2, &proposal);
  EXPECT_EQ(proposal.size(), 0);
}

TEST(CandidateFusion, TiesGoToTheLowerToken) {
  TokenTree tree;
  for (const Token token : {9, 3, 7}) {
    tree.Count(0);
    tree.Count(tree.FindOrAdd(0, token));
  }
  const CandidateSource source = {&tree, 0, 1.0, 1.0};
  CandidateFusion fusion;
  Proposal proposal;
  fusion.Fuse(std::span(&source, 1), 3, &proposal);
  EXPECT_EQ(TokensOfProposal(proposal), (std::vector<Token>{3, 7, 9}));
}

// The paper's weights, by hand. Input: 1 2 3 1 2; the match of "1 2" (and "2") says 3, with
// 0.6 * 1/2 (the tail counts as an occurrence too). Datastore: 1 2 is followed by 4, always.
TEST(Retriever, WeighsInputAndDatastore) {
  InputTrie input;
  const std::vector<Token> context = {1, 2, 3, 1, 2};
  for (const Token token : context) input.Append(token);
  const Segments segments = {BuildSegment({{1, 2, 4, 5}}, 10)};
  Retriever retriever;
  Proposal proposal;
  retriever.Propose(&input, segments, context, 8, &proposal);
  EXPECT_EQ(proposal.source, ProposalSource::kRetrieval);
  // Datastore: 4 with 1, 5 below it with 1. Input: 3 with 0.3; below it 1 with 0.3 * 0.8 and 2
  // below that with 0.3 * 0.8^2 from the match of two tokens.
  EXPECT_EQ(TokensOfProposal(proposal), (std::vector<Token>{4, 5, 3, 1, 2}));
  EXPECT_EQ(Parents(proposal), (std::vector<int>{0, 1, 0, 3, 4}));

  retriever.Propose(nullptr, segments, context, 8, &proposal);
  EXPECT_EQ(TokensOfProposal(proposal), (std::vector<Token>{4, 5}));
  retriever.Propose(&input, {}, context, 8, &proposal);
  EXPECT_EQ(TokensOfProposal(proposal), (std::vector<Token>{3, 1, 2}));
  retriever.Propose(&input, segments, context, 3, &proposal);
  EXPECT_EQ(proposal.size(), 2);
  retriever.Propose(&input, segments, context, 1, &proposal);
  EXPECT_EQ(proposal.size(), 0);
  EXPECT_EQ(proposal.source, ProposalSource::kNone);
}

DraftContext Context(SequenceId sequence, std::span<const Token> tokens, int lookahead,
                     Proposal* proposal) {
  return {.sequence = sequence,
          .tokens = tokens,
          .lookahead = lookahead,
          .max_nodes = lookahead,
          .proposal = proposal};
}

TEST(RetrievalDrafter, FollowsSeveralSequences) {
  RetrievalDrafter drafter;
  std::vector<Proposal> proposals(2);
  std::vector<std::vector<Token>> tokens = {{1, 2, 3, 1}, {1, 5, 6, 1}};
  std::vector<DraftContext> contexts = {Context(1, tokens[0], 4, &proposals[0]),
                                        Context(2, tokens[1], 4, &proposals[1])};
  drafter.Propose(contexts);
  EXPECT_EQ(TokensOfProposal(proposals[0]), (std::vector<Token>{2, 3, 1}));
  EXPECT_EQ(TokensOfProposal(proposals[1]), (std::vector<Token>{5, 6, 1}));
  tokens[0].insert(tokens[0].end(), {2, 9, 2});
  contexts[0] = Context(1, tokens[0], 1, &proposals[0]);
  drafter.Propose(std::span(contexts).first(1));
  EXPECT_EQ(TokensOfProposal(proposals[0]),
            (std::vector<Token>{3}));  // 3 and 9 once each: the lower.
  // An ended sequence leaves nothing behind, whoever has its trie next.
  drafter.Forget(1);
  drafter.Forget(2);
  const std::vector<Token> fresh = {2};
  contexts[0] = Context(3, fresh, 4, &proposals[0]);
  drafter.Propose(std::span(contexts).first(1));
  EXPECT_EQ(proposals[0].size(), 0);
}

TEST(RestDrafter, TakesTheLongestMatchOfTheDatastoreOnly) {
  const Segments segments = {
      BuildSegment({{1, 2, 3, 7}, {1, 2, 3, 7}, {1, 2, 3, 8}, {2, 3, 9}, {2, 3, 9}}, 10)};
  RestDrafter drafter;
  Proposal proposal;
  const std::vector<Token> context = {1, 2, 3};
  drafter.Propose(segments, context, 8, &proposal);
  EXPECT_EQ(TokensOfProposal(proposal), (std::vector<Token>{7, 8}));
  // One token is no match for REST.
  drafter.Propose(segments, std::vector<Token>{5, 3}, 8, &proposal);
  EXPECT_EQ(proposal.size(), 0);
}

TEST(TrieDrafter, RemembersEndedSequences) {
  TrieDrafter drafter;
  Proposal proposal;
  const std::vector<Token> first = {1, 2, 3};
  DraftContext context = Context(1, first, 4, &proposal);
  drafter.Propose(std::span(&context, 1));
  EXPECT_EQ(proposal.size(), 0);
  const std::vector<Token> second = {1, 2};
  context = Context(2, second, 4, &proposal);
  drafter.Propose(std::span(&context, 1));
  EXPECT_EQ(proposal.size(), 0);
  drafter.Forget(1);
  drafter.Remember({.tokens = first});
  drafter.Propose(std::span(&context, 1));
  EXPECT_EQ(TokensOfProposal(proposal), (std::vector<Token>{3}));
}

TEST(TrieDrafter, EndedSequencesAreFoundInTheirScopeOnly) {
  TrieDrafter drafter;
  Proposal proposal;
  const std::vector<Token> ended = {1, 2, 3};
  const std::vector<Token> beginning = {1, 2};
  const auto propose = [&](SequenceId sequence, std::uint64_t scope) {
    DraftContext context = Context(sequence, beginning, 4, &proposal);
    context.scope = scope;
    drafter.Propose(std::span(&context, 1));
    return TokensOfProposal(proposal);
  };
  drafter.Remember({.tokens = ended, .scope = 7});
  EXPECT_EQ(propose(2, 7), (std::vector<Token>{3}));
  EXPECT_EQ(propose(3, 8), std::vector<Token>());
  EXPECT_EQ(propose(4, 0), std::vector<Token>());
  // Others' scopes push one out, the one that nothing ended in for longest.
  for (std::uint64_t scope = 100; scope < 100 + TrieDrafter::kMaxScopes; ++scope) {
    drafter.Remember({.tokens = ended, .scope = scope});
  }
  EXPECT_EQ(propose(5, 100), (std::vector<Token>{3}));
  EXPECT_EQ(propose(6, 7), std::vector<Token>());
}

}  // namespace
}  // namespace foretoken
