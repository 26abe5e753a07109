// The engine's side of the protocol against a scripted speculator.

#include "core/ssd/speculator_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "base/threads/clock.h"
#include "core/ssd/channel_testing.h"
#include "core/ssd/outcome_record.h"

namespace foretoken {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kPatienceNs = 1'000'000'000;

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    auto host = std::make_unique<TestHost>(&pair_);
    host_ = host.get();
    client_.emplace(
        std::move(host),
        ConfigureMessage{.max_nodes = 8, .max_cache_budget = 16, .vocabulary = 1000},
        [this](const std::string& warning) { warnings_.push_back(warning); }, kDraft);
  }

  // The kinds of what the engine has sent since the last call.
  std::vector<MessageKind> Sent() {
    std::vector<MessageKind> kinds;
    for (auto record = pair_.speculator.Receive(); !record.empty();
         record = pair_.speculator.Receive()) {
      kinds.push_back(KindOf(record));
      last_sent_.assign(record.begin(), record.end());
    }
    return kinds;
  }

  void SayHello(HelloMessage hello = {.draft = kDraft}) { SendMessage(hello, &pair_.speculator); }

  void Open() {
    client_->Open({.sequence = 1,
                   .tokens = tokens_,
                   .prompt_tokens = 3,
                   .sampling = &sampling_,
                   .plan = &plan_,
                   .stop_tokens = {}});
  }

  // What the speculator prepares: a chain of `nodes` tokens for every outcome of `outcomes`.
  void Prepare(std::uint32_t epoch, const std::vector<Outcome>& outcomes, int nodes) {
    BranchTokensMessage message{.epoch = epoch, .sequence = 1, .list = {}};
    for (const Outcome& outcome : outcomes) {
      for (int i = 0; i < nodes; ++i) {
        message.list.push_back({.node = static_cast<std::int8_t>(outcome.node),
                                .index = static_cast<std::int8_t>(i + 1),
                                .parent = static_cast<std::int8_t>(i),
                                .bonus = outcome.bonus,
                                .token = 100 + i});
      }
    }
    SendMessage(message, &pair_.speculator);
    client_->Poll();
  }

  inline static const ModelIdentity kDraft = ModelIdentity::Of("weights", "words");
  ChannelPair pair_;
  TestHost* host_ = nullptr;
  std::vector<std::string> warnings_;
  std::optional<SpeculatorClient> client_;
  std::vector<std::byte> last_sent_;
  std::vector<Token> tokens_ = {1, 2, 3};
  SamplingParams sampling_{.temperature = 0.5F, .top_k = 7, .min_p = 0.25F, .seed = 9};
  SpeculationPlan plan_{.mode = Mode::kSsd,
                        .lookahead = 4,
                        .primary = UniformFanout(2, 4),
                        .after_fallback = UniformFanout(2, 4)};
};

TEST_F(ClientTest, SaysWhoItIsAndHearsWhoTheOtherIs) {
  EXPECT_THAT(Sent(), ElementsAre(MessageKind::kHello, MessageKind::kConfigure));
  SayHello();
  const Status ready = client_->WaitReady(kPatienceNs);
  EXPECT_TRUE(ready.ok());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(ClientTest, RefusesWhoIsNotTheRightSpeculator) {
  const auto refused = [](HelloMessage hello, const char* why) {
    const Status status = CheckHello(std::as_bytes(std::span(&hello, 1)), kDraft);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, HasSubstr(why));
  };
  HelloMessage hello{.draft = kDraft};
  EXPECT_TRUE(CheckHello(std::as_bytes(std::span(&hello, 1)), kDraft).ok());
  refused({.magic = 1, .draft = kDraft}, "does not speak the protocol");
  refused({.version = 1, .draft = kDraft}, "speaks version 1 of the protocol and not 7");
  refused({.record_bytes = 9, .draft = kDraft}, "the same build");
  refused({.draft = ModelIdentity::Of("weight", "words")}, "another draft model");
  refused({.draft = ModelIdentity::Of("weights", "")}, "another tokenizer");

  // What the protocol began with before there was a hello.
  const MessageKind old = MessageKind::kPlan;
  SendMessage(old, &pair_.speculator);
  const Status ready = client_->WaitReady(kPatienceNs);
  ASSERT_FALSE(ready.ok());
  EXPECT_EQ(ready.error().message,
            "the speculator in the test does not speak the protocol: is it of another version of "
            "foretoken?");
}

TEST_F(ClientTest, AForeignSpeculatorFoundLaterMeansMisses) {
  Open();
  SayHello({.version = 8, .draft = kDraft});
  client_->Poll();
  EXPECT_FALSE(client_->healthy());
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("version 8"));
  EXPECT_FALSE(client_->Lookup(1, {0, 10}).any);
}

TEST_F(ClientTest, OpensWithEveryOptionThatShapesTokens) {
  sampling_.logit_bias = {{4, 1.5F}};
  Sent();
  Open();
  const auto open = pair_.to_speculator.front();
  const auto* message = As<OpenMessage>(open);
  ASSERT_NE(message, nullptr);
  const SamplingParams there = FromNumbers(message->sampling);
  EXPECT_EQ(there.temperature, 0.5F);
  EXPECT_EQ(there.top_k, 7);
  EXPECT_EQ(there.min_p, 0.25F);
  EXPECT_EQ(there.seed, 9U);
  EXPECT_EQ(message->plan, plan_);
  EXPECT_THAT(Sent(),
              ElementsAre(MessageKind::kOpen, MessageKind::kOpenBias, MessageKind::kOpenTokens));
}

TEST_F(ClientTest, OneAnswerSaysAllThatTheCacheKnows) {
  SayHello();
  Open();
  EXPECT_FALSE(client_->Lookup(1, {0, 10}).any);
  Prepare(1, {{0, 10}, {1, 10}, {0, 11}}, 3);
  const CacheAnswer hit = client_->Lookup(1, {0, 11});
  EXPECT_TRUE(hit.any && hit.hit);
  EXPECT_EQ(hit.rank, 1);
  EXPECT_EQ(hit.proposal.size(), 3);
  EXPECT_EQ(hit.proposal.source, ProposalSource::kCache);
  ASSERT_NE(hit.distributions, nullptr);
  EXPECT_EQ(hit.distributions->at(0).kind, DraftDistribution::Kind::kPoint) << "none has come";
  const CacheAnswer miss = client_->Lookup(1, {0, 12});
  EXPECT_TRUE(miss.any);
  EXPECT_FALSE(miss.hit);
  EXPECT_EQ(miss.proposal.size(), 0);
  EXPECT_FALSE(client_->Lookup(2, {0, 11}).any) << "a sequence that is not open";
}

TEST_F(ClientTest, TellsWhatChanged) {
  SayHello();
  Open();
  Prepare(1, {{0, 10}, {2, 20}}, 4);
  Sent();
  Proposal next = client_->Lookup(1, {2, 20}).proposal;
  next.Prune(2, 8);
  client_->SendOutcome(1, {2, 20}, std::vector<Token>{7, 8, 20}, next, plan_, false);
  EXPECT_THAT(Sent(), ElementsAre(MessageKind::kOutcome)) << "the plan is the same";
  EXPECT_LE(last_sent_.size(), 64U);
  const OutcomeMessage* hit = OutcomeOf(last_sent_);
  ASSERT_NE(hit, nullptr);
  EXPECT_TRUE(hit->taken);
  EXPECT_EQ(hit->kept, 0b11U);
  EXPECT_EQ(hit->node, 2);
  const auto committed = CommittedOf(*hit);
  EXPECT_THAT(std::span<const Token>(committed), ElementsAre(7, 8, 20));
  EXPECT_EQ(hit->epoch, 2U);
  EXPECT_FALSE(client_->Lookup(1, {2, 20}).any) << "that was the last round's";

  plan_.lookahead = 3;
  next.source = ProposalSource::kNgram;
  client_->SendOutcome(1, {0, 5}, std::vector<Token>{5}, next, plan_, false);
  EXPECT_THAT(Sent(), ElementsAre(MessageKind::kPlan, MessageKind::kOutcome));
  const OutcomeMessage* miss = OutcomeOf(last_sent_);
  ASSERT_NE(miss, nullptr);
  EXPECT_FALSE(miss->taken);
  EXPECT_EQ(NextOf(*miss, nullptr).tokens, next.tokens);
  client_->SendOutcome(1, {0, 6}, std::vector<Token>{6}, {}, plan_, false);
  EXPECT_THAT(Sent(), ElementsAre(MessageKind::kOutcome));
}

TEST_F(ClientTest, TakesTheProposalOfTheRoundItAskedIn) {
  SayHello();
  Open();
  client_->Poll();
  client_->SendOutcome(1, {0, 5}, std::vector<Token>{5}, {}, plan_, /*wants_jit=*/true);
  Proposal proposal;
  EXPECT_FALSE(client_->TakeProposal(1, &proposal));
  ProposalMessage late{.epoch = 1, .sequence = 1, .proposal = {}};
  late.proposal.Extend(1);
  SendMessage(late, &pair_.speculator);
  client_->Poll();
  EXPECT_FALSE(client_->TakeProposal(1, &proposal));
  late.epoch = 2;
  SendMessage(late, &pair_.speculator);
  client_->Poll();
  EXPECT_TRUE(client_->TakeProposal(1, &proposal));
  EXPECT_EQ(proposal.size(), 1);
  EXPECT_EQ(proposal.source, ProposalSource::kJit);
}

// A message of the test's as the bytes that cross.
template <typename Message>
std::vector<std::byte> BytesOf(const Message& message) {
  const auto record = RecordOf(message);
  return {record.begin(), record.end()};
}

// What a speculator that was taken over may say. Nothing of it may reach the engine.
std::vector<std::vector<std::byte>> Lies() {
  std::vector<std::vector<std::byte>> lies;
  for (std::uint32_t kind = 0; kind < 32; ++kind) {
    for (const std::size_t size : {std::size_t{4}, std::size_t{17}, std::size_t{200}}) {
      lies.emplace_back(size, std::byte{0x7f});
      std::memcpy(lies.back().data(), &kind, sizeof(kind));
    }
  }
  const auto branch = [&](BranchToken token) {
    lies.push_back(BytesOf(BranchTokensMessage{.epoch = 1, .sequence = 1, .list = {token}}));
  };
  branch({.node = -1, .index = 1, .bonus = 5, .token = 5});
  branch({.node = 127, .index = 1, .bonus = 5, .token = 5});
  branch({.index = 0, .bonus = 5, .token = 5});
  branch({.index = 1, .parent = 1, .bonus = 5, .token = 5});
  branch({.index = 1, .parent = -1, .bonus = 5, .token = 5});
  branch({.index = 1, .bonus = 1000, .token = 5});
  branch({.index = 1, .bonus = 5, .token = -1});

  const auto distribution = [&](int parent, TokenProbability entry) {
    lies.push_back(BytesOf(DistributionMessage{
        .epoch = 1, .sequence = 1, .parent = parent, .jit = true, .list = {entry}}));
  };
  distribution(-1, {.token = 5, .probability = 0.5F});
  distribution(kMaxProposal + 1, {.token = 5, .probability = 0.5F});
  distribution(0, {.token = 1000, .probability = 0.5F});
  distribution(0, {.token = 5, .probability = -0.5F});
  distribution(0, {.token = 5, .probability = std::numeric_limits<float>::quiet_NaN()});

  const auto proposal = [&](const auto& spoil) {
    ProposalMessage message{.epoch = 1, .sequence = 1, .proposal = {}};
    message.proposal.Extend(5);
    message.proposal.Extend(6);
    spoil(&message.proposal);
    lies.push_back(BytesOf(message));
  };
  proposal([](Proposal* tree) { tree->tokens[1] = 1000; });
  proposal([](Proposal* tree) { tree->tokens[0] = -7; });
  proposal([](Proposal* tree) { tree->parents[0] = 1; });
  proposal([](Proposal* tree) { tree->parents[1] = -1; });
  proposal([](Proposal* tree) { tree->parents.clear(); });
  proposal([](Proposal* tree) {
    const std::size_t absurd = 1 << 20;  // Where the vector keeps how many there are.
    std::memcpy(static_cast<void*>(&tree->tokens), &absurd, sizeof(absurd));
    std::memcpy(static_cast<void*>(&tree->parents), &absurd, sizeof(absurd));
  });
  lies.push_back(BytesOf(DraftPassMessage{.rows = 0, .ns = 5}));
  lies.push_back(BytesOf(DraftPassMessage{.rows = 1, .ns = -5}));
  return lies;
}

TEST_F(ClientTest, WhoSaysWhatMakesNoSenseIsLost) {
  for (const auto& lie : Lies()) {
    SayHello();
    Open();
    client_->Poll();
    ASSERT_TRUE(client_->healthy());
    warnings_.clear();
    ASSERT_TRUE(pair_.speculator.Send(lie));
    client_->Poll();
    EXPECT_FALSE(client_->healthy()) << static_cast<int>(KindOf(lie));
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("has sent what makes no sense")));
    EXPECT_FALSE(client_->Lookup(1, {0, 5}).any);
    client_->Close(1);
    client_->Heal({});
  }
}

TEST_F(ClientTest, WhatComesLateOrOfAnotherSequenceIsNoLie) {
  SayHello();
  Open();
  ProposalMessage late{.epoch = 77, .sequence = 1, .proposal = {}};
  late.proposal.Extend(1);
  SendMessage(late, &pair_.speculator);
  SendMessage(DistributionMessage{.epoch = 1, .sequence = 9, .list = {}}, &pair_.speculator);
  SendMessage(DraftPassMessage{.rows = 3, .ns = 5000}, &pair_.speculator);
  Prepare(1, {{0, 10}}, 1);
  EXPECT_TRUE(client_->healthy());
  EXPECT_TRUE(client_->Lookup(1, {0, 10}).hit);
}

TEST_F(ClientTest, WaitsFarLongerThanADraftTakes) {
  SayHello();
  client_->Poll();
  const std::int64_t least = client_->ProposalPatienceNs(4);
  EXPECT_GE(least, 1'000'000'000) << "a busy machine is no stuck speculator";
  constexpr std::int64_t kPassNs = 50'000'000;
  for (int i = 0; i < 100; ++i) {
    SendMessage(DraftPassMessage{.rows = 1, .ns = kPassNs}, &pair_.speculator);
  }
  client_->Poll();
  EXPECT_NEAR(static_cast<double>(client_->ProposalPatienceNs(4)), 100.0 * 5 * kPassNs, 1e6);
  SendMessage(DraftPassMessage{.rows = 1, .ns = std::numeric_limits<std::int64_t>::max()},
              &pair_.speculator);
  client_->Poll();
  EXPECT_LE(client_->ProposalPatienceNs(4), SpeculatorClient::kReadyPatienceNs);
}

TEST_F(ClientTest, WhoDoesNotAnswerIsLostAndOwesNothing) {
  SayHello();
  Open();
  client_->Poll();
  client_->SendOutcome(1, {0, 5}, std::vector<Token>{5}, {}, plan_, /*wants_jit=*/true);
  Proposal proposal;
  EXPECT_FALSE(client_->TakeProposal(1, &proposal));
  client_->LoseSilent();
  EXPECT_TRUE(client_->TakeProposal(1, &proposal));
  EXPECT_EQ(proposal.size(), 0);
  EXPECT_TRUE(client_->NeedsHealing());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("does not answer")));
}

TEST_F(ClientTest, ASecondLossIsHealedTooButNotAtOnce) {
  SayHello();
  client_->Poll();
  client_->LoseSilent();
  ASSERT_TRUE(client_->NeedsHealing());
  client_->Heal({});
  SayHello();
  client_->Poll();
  EXPECT_TRUE(client_->healthy());
  client_->LoseSilent();
  EXPECT_FALSE(client_->NeedsHealing()) << "else one that always fails would be started for ever";
  const std::int64_t deadline = NowNs() + 10'000'000'000;
  while (!client_->NeedsHealing() && NowNs() < deadline) usleep(10'000);
  ASSERT_TRUE(client_->NeedsHealing());
  client_->Heal({});
  SayHello();
  client_->Poll();
  EXPECT_TRUE(client_->healthy());
}

TEST_F(ClientTest, OneThatStillLoadsIsNotWaitedFor) {
  Open();
  EXPECT_FALSE(client_->healthy());
  client_->SendOutcome(1, {0, 5}, std::vector<Token>{5}, {}, plan_, /*wants_jit=*/true);
  Proposal proposal;
  EXPECT_TRUE(client_->TakeProposal(1, &proposal));
  EXPECT_EQ(proposal.size(), 0);
}

TEST_F(ClientTest, ALostSpeculatorIsGreetedAnewAndToldOfWhatLives) {
  SayHello();
  Open();
  Prepare(1, {{0, 10}}, 1);
  EXPECT_TRUE(client_->Lookup(1, {0, 10}).hit);
  host_->alive = false;
  EXPECT_TRUE(client_->NeedsHealing());
  EXPECT_FALSE(client_->Lookup(1, {0, 10}).any) << "what a lost one said counts no longer";
  const LiveSequence live{.sequence = 1,
                          .tokens = tokens_,
                          .prompt_tokens = 3,
                          .sampling = &sampling_,
                          .plan = &plan_,
                          .stop_tokens = {}};
  client_->Heal(std::span(&live, 1));
  EXPECT_FALSE(client_->healthy()) << "it has not said hello yet";
  EXPECT_THAT(Sent(), ElementsAre(MessageKind::kHello, MessageKind::kConfigure, MessageKind::kOpen,
                                  MessageKind::kOpenTokens));
  SayHello();
  Prepare(1, {{0, 10}}, 1);
  EXPECT_TRUE(client_->healthy());
  EXPECT_TRUE(client_->Lookup(1, {0, 10}).hit);
}

}  // namespace
}  // namespace foretoken
