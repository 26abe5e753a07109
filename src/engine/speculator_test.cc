// The speculator against an independent drafter: whatever it prepares for an outcome must be what a
// fresh draft model says after that outcome, however its KV came about.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "draft/model_drafter.h"
#include "engine/engine_testing.h"
#include "ssd/speculator.h"
#include "transport/thread_host.h"

namespace foretoken {
namespace {

constexpr int kLookahead = 4;
constexpr int kFanout = 3;
constexpr int kContext = 512;

class SpeculatorTest : public testing::TestWithParam<float> {
 protected:
  void SetUp() override {
    const auto cores = AvailableCores();
    auto draft =
        LoadModel({.directory = BundledModel("demo-draft")}, {cores.back()}, Precision::kBF16);
    auto truth =
        LoadModel({.directory = BundledModel("demo-draft")}, {cores.front()}, Precision::kBF16);
    ASSERT_TRUE(draft.ok() && truth.ok());
    draft_ = std::move(draft).value();
    truth_ = std::move(truth).value();
    LoadedModel* draft_model = draft_.get();
    auto host = ThreadHost::Start(
        [draft_model](Channel& channel, const std::atomic<bool>& stop) {
          draft_model->pool->Adopt();
          Speculator speculator(draft_model->model.get(), &channel);
          speculator.Run(
              [](void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(); },
              const_cast<std::atomic<bool>*>(&stop));
        },
        "in the test");
    ASSERT_TRUE(host.ok());
    client_ = std::make_unique<SpeculatorClient>(
        std::move(host).value(),
        ConfigureMessage{.max_lookahead = kLookahead,
                         .max_cache_budget = kFanout * (kLookahead + 1),
                         .max_sequences = 4,
                         .max_context = kContext},
        [](const std::string& warning) { ADD_FAILURE() << warning; });
    sampling_.temperature = GetParam();
    sampling_.seed = 77;
    if (GetParam() > 1) sampling_.repetition_penalty = 1.2F;
  }

  void Open(SequenceId sequence, const std::vector<Token>& tokens) {
    client_->Open({.sequence = sequence,
                   .tokens = tokens,
                   .prompt_tokens = static_cast<std::int32_t>(prompt_tokens_),
                   .sampling = &sampling_,
                   .plan = &plan_,
                   .stop_tokens = {}});
  }

  // What a drafter without history of its own proposes after `tokens`.
  std::vector<Token> Expected(const std::vector<Token>& tokens, int count) {
    ModelDrafter drafter(truth_->model.get(), 1, kContext);
    TokenHistory history(truth_->model->config().vocabulary);
    history.AddPrompt(std::span<const Token>(tokens).first(prompt_tokens_));
    for (std::size_t i = prompt_tokens_; i < tokens.size(); ++i) history.AddOutput(tokens[i]);
    Proposal proposal;
    DraftContext context{.sequence = 1,
                         .tokens = tokens,
                         .sampling = &sampling_,
                         .history = &history,
                         .lookahead = count,
                         .proposal = &proposal};
    drafter.Propose(std::span(&context, 1));
    return {proposal.tokens.begin(), proposal.tokens.end()};
  }

  // Waits until every outcome of a proposal of `proposal` tokens is prepared to the full depth.
  std::vector<PreparedBranch> AwaitBranches(SequenceId sequence, int proposal) {
    const std::int64_t deadline = NowNs() + 20'000'000'000;
    std::vector<PreparedBranch> branches;
    while (NowNs() < deadline) {
      client_->Poll();
      branches.clear();
      bool full = true;
      for (int node = 0; node <= proposal; ++node) {
        std::vector<Token> bonuses;
        client_->PreparedAt(sequence, node, &bonuses);
        full = full && bonuses.size() == kFanout;
        for (const Token bonus : bonuses) {
          branches.push_back(*client_->Lookup(sequence, {node, bonus}));
          full = full && branches.back().chain.size() == kLookahead;
        }
      }
      if (full) return branches;
    }
    ADD_FAILURE() << "only " << branches.size() << " branches after 20 s";
    return branches;
  }

  // Every branch must continue committed + accepted + bonus as the draft model would.
  void CheckBranches(const std::vector<PreparedBranch>& branches,
                     const std::vector<Token>& committed, const std::vector<Token>& proposal) {
    for (const PreparedBranch& branch : branches) {
      std::vector<Token> path = committed;
      path.insert(path.end(), proposal.begin(), proposal.begin() + branch.outcome.node);
      path.push_back(branch.outcome.bonus);
      EXPECT_EQ(std::vector<Token>(branch.chain.begin(), branch.chain.end()),
                Expected(path, kLookahead))
          << "outcome (" << branch.outcome.node << ", " << branch.outcome.bonus << ")";
      if (branch.outcome.node < static_cast<int>(proposal.size())) {
        EXPECT_NE(branch.outcome.bonus, proposal[branch.outcome.node]);
      }
    }
  }

  void Send(SequenceId sequence, Outcome outcome, const std::vector<Token>& committed,
            const std::vector<Token>& next, bool jit = false) {
    Proposal proposal;
    for (const Token token : next) proposal.Extend(token);
    client_->SendOutcome(sequence, outcome, committed, proposal, plan_, jit);
  }

  std::unique_ptr<LoadedModel> draft_;
  std::unique_ptr<LoadedModel> truth_;
  std::unique_ptr<SpeculatorClient> client_;
  SamplingParams sampling_;
  SpeculationPlan plan_{.mode = Mode::kSsd,
                        .lookahead = kLookahead,
                        .primary = UniformFanout(kFanout, kLookahead),
                        .after_fallback = UniformFanout(kFanout, kLookahead)};
  std::size_t prompt_tokens_ = 0;
};

TEST_P(SpeculatorTest, PreparesWhatAFreshDraftWouldSay) {
  std::vector<Token> committed = StoryPrompts()[0];
  prompt_tokens_ = committed.size();
  Open(7, committed);
  std::vector<Token> proposal;
  for (int round = 0; round < 12; ++round) {
    const auto branches = AwaitBranches(7, static_cast<int>(proposal.size()));
    ASSERT_FALSE(branches.empty());
    CheckBranches(branches, committed, proposal);
    // Hits at every node in turn, and every fourth time a miss with a foreign proposal.
    std::vector<Token> emitted;
    std::vector<Token> next;
    Outcome outcome;
    if (round % 4 == 3) {
      outcome = {static_cast<std::int32_t>(proposal.size()) / 2, 1000 + round};
      next = {500, 501, 502};
    } else {
      const PreparedBranch& taken = branches[(round * 5) % branches.size()];
      outcome = taken.outcome;
      // The engine may have taken less than what was prepared by now.
      next.assign(taken.chain.begin(), taken.chain.begin() + (round % 2 == 0 ? kLookahead : 2));
    }
    emitted.assign(proposal.begin(), proposal.begin() + outcome.node);
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
  std::vector<Token> proposal;
  for (int round = 0; round < 4; ++round) {
    AwaitBranches(3, static_cast<int>(proposal.size()));
    std::vector<Token> emitted(proposal.begin(), proposal.begin() + proposal.size() / 2);
    emitted.push_back(900 + round);
    Send(3, {static_cast<std::int32_t>(emitted.size()) - 1, 900 + round}, emitted, {},
         /*jit=*/true);
    committed.insert(committed.end(), emitted.begin(), emitted.end());
    Proposal chain;
    const std::int64_t deadline = NowNs() + 20'000'000'000;
    while (!client_->TakeChain(3, &chain)) {
      ASSERT_LT(NowNs(), deadline);
      client_->Wait(1'000'000);
      client_->Poll();
    }
    proposal.assign(chain.tokens.begin(), chain.tokens.end());
    EXPECT_EQ(proposal, Expected(committed, kLookahead));
    EXPECT_EQ(chain.source, ProposalSource::kJit);
    CheckBranches(AwaitBranches(3, kLookahead), committed, proposal);
  }
}

TEST_P(SpeculatorTest, SequencesDoNotDisturbEachOther) {
  const auto prompts = StoryPrompts();
  prompt_tokens_ = 4;
  for (SequenceId i = 0; i < 4; ++i) Open(i + 1, prompts[i]);
  for (SequenceId i = 0; i < 4; ++i) CheckBranches(AwaitBranches(i + 1, 0), prompts[i], {});
  // A closed and reopened sequence starts afresh.
  client_->Close(2);
  Open(2, prompts[4]);
  CheckBranches(AwaitBranches(2, 0), prompts[4], {});
  CheckBranches(AwaitBranches(3, 0), prompts[2], {});
}

INSTANTIATE_TEST_SUITE_P(Temperatures, SpeculatorTest, testing::Values(0.0F, 1.0F, 1.3F));

}  // namespace
}  // namespace foretoken
