#include "core/ssd/outcome_record.h"

#include <gtest/gtest.h>

#include <random>

namespace foretoken {
namespace {

Proposal RandomTree(std::mt19937* random, int nodes) {
  Proposal tree;
  for (int i = 0; i < nodes; ++i) {
    const int parent = (*random)() % 2 == 0 ? i : static_cast<int>((*random)() % (i + 1));
    tree.Append(parent, static_cast<Token>(10 * i));
  }
  return tree;
}

void ExpectSameProposal(const Proposal& a, const Proposal& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.parents, b.parents);
  EXPECT_EQ(a.source, b.source);
}

TEST(OutcomeRecord, APartOfABranchIsToldByItsNodes) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    // The speculator may have gone on while the engine looked its branch up.
    const Proposal branch = RandomTree(&random, static_cast<int>(random() % (kMaxProposal + 1)));
    Proposal next = branch;
    next.source = ProposalSource::kCache;
    next.Truncate(static_cast<int>(random() % (branch.size() + 1)));
    const Proposal seen = next;
    if (i % 2 == 0) next.Prune(1 + static_cast<int>(random() % 8), static_cast<int>(random() % 40));
    const std::vector<Token> committed(1 + random() % (kMaxProposal + 1), 77);
    OutcomeMessage message;
    Pack(committed, next, &seen, &message);
    EXPECT_TRUE(message.taken);
    const auto record = RecordOf(message);
    EXPECT_EQ(record.size(), BytesFor<OutcomeMessage>(committed.size()));
    const OutcomeMessage* received = OutcomeOf(record);
    ASSERT_NE(received, nullptr);
    ExpectSameProposal(NextOf(*received, &branch), next);
    EXPECT_EQ(CommittedOf(*received).size(), committed.size());
    EXPECT_EQ(NextOf(*received, nullptr).size(), 0) << "a branch that is not there";
  }
}

TEST(OutcomeRecord, AnyOtherProposalCrossesAsItIs) {
  std::mt19937 random(4);
  for (int i = 0; i < 300; ++i) {
    Proposal next = RandomTree(&random, static_cast<int>(random() % (kMaxProposal + 1)));
    next.source = ProposalSource::kNgram;
    const std::vector<Token> committed(1 + random() % (kMaxProposal + 1), 77);
    Proposal other;
    other.Extend(-5);
    OutcomeMessage message;
    Pack(committed, next, i % 2 == 0 || next.size() == 0 ? nullptr : &other, &message);
    EXPECT_FALSE(message.taken);
    const OutcomeMessage* received = OutcomeOf(RecordOf(message));
    ASSERT_NE(received, nullptr);
    ExpectSameProposal(NextOf(*received, nullptr), next);
  }
}

TEST(OutcomeRecord, RefusesWhatMakesNoSense) {
  Proposal next;
  next.Extend(1);
  next.Extend(2);
  OutcomeMessage message;
  Pack(std::vector<Token>{5}, next, nullptr, &message);
  EXPECT_LE(RecordOf(message).size(), 64U);
  const auto record = RecordOf(message);
  EXPECT_EQ(OutcomeOf(record.first(record.size() - 1)), nullptr);
  EXPECT_EQ(OutcomeOf(record.first(8)), nullptr);
  message.list[2].parent = 2;
  EXPECT_EQ(OutcomeOf(record), nullptr) << "a node below a later one";
  message.committed = 0;
  EXPECT_EQ(OutcomeOf(RecordOf(message)), nullptr) << "an outcome without a token";
}

TEST(Messages, ARecordIsRefusedWhoseListDoesNotFitIt) {
  BranchTokensMessage message;
  message.list.push_back({.token = 7});
  const auto whole = RecordOf(message);
  std::vector<std::byte> record(whole.begin(), whole.end());
  ASSERT_NE(As<BranchTokensMessage>(record), nullptr);
  EXPECT_EQ(As<BranchTokensMessage>(record)->list[0].token, 7);
  EXPECT_EQ(As<DistributionMessage>(record), nullptr) << "another kind";
  std::uint64_t size = 2;
  std::byte* const at = record.data() + offsetof(BranchTokensMessage, list);
  std::memcpy(at, &size, sizeof(size));
  EXPECT_EQ(As<BranchTokensMessage>(record), nullptr) << "an element that is not there";
  size = 1 + (std::uint64_t{1} << 62);  // As many bytes as one element, modulo 2^64.
  std::memcpy(at, &size, sizeof(size));
  EXPECT_EQ(As<BranchTokensMessage>(record), nullptr) << "more elements than any list has";
}

}  // namespace
}  // namespace foretoken
