#include "core/engine/round/speculation_ahead.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/threads/clock.h"
#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

// A speculator that says hello, takes everything and never says anything else.
class SilentHost : public SpeculatorHost {
 public:
  SilentHost(int* records, int* restarts) : channel_(records), restarts_(restarts) {}
  Channel& channel() override { return channel_; }
  bool Alive() override { return true; }
  // The next one loads its model for as long as the test takes.
  Status Restart() override {
    ++*restarts_;
    return {};
  }
  std::string Describe() const override { return "in the test"; }

 private:
  class SilentChannel : public Channel {
   public:
    explicit SilentChannel(int* records) : records_(records) {}
    bool Send(std::span<const std::byte> /*record*/) override { return ++*records_, true; }
    bool Readable() const override { return greets_; }
    std::span<const std::byte> Receive() override {
      if (!std::exchange(greets_, false)) return {};
      return std::as_bytes(std::span(&hello_, 1));
    }
    void WaitReadable(std::int64_t timeout_ns) override {
      std::this_thread::sleep_for(std::chrono::nanoseconds(timeout_ns));
    }

   private:
    int* records_;
    HelloMessage hello_;
    bool greets_ = true;
  };
  SilentChannel channel_;
  int* restarts_;
};

class SpeculationAheadTest : public testing::Test {
 protected:
  SpeculationAheadTest()
      : ahead_(std::make_unique<SpeculatorClient>(
                   std::make_unique<SilentHost>(&records_, &restarts_),
                   ConfigureMessage{.max_lookahead = 4,
                                    .max_nodes = 4,
                                    .max_cache_budget = 8,
                                    .max_sequences = 2,
                                    .max_context = 64},
                   [this](const std::string& warning) { warnings_.push_back(warning); }),
               /*taps=*/nullptr, TapPart{}) {
    ahead_.TakeNews();
  }
  void TearDown() override { EXPECT_EQ(warnings_.size(), expected_warnings_); }

  Sequence* Add(SequenceId id, Fallback fallback) {
    SpeculationPlan plan{.mode = Mode::kSsd, .lookahead = 2, .fallback = fallback};
    plan.primary = plan.after_fallback = UniformFanout(1, 2);
    running_.push_back(DecodingSequence(id, {1, 2, 3, 4, 1, 2, 3}, plan));
    Sequence* sequence = running_.back().get();
    ahead_.Open(sequence);
    sequence->outcome = {.node = 0, .bonus = 3};
    round_.pass.push_back(sequence);
    return sequence;
  }
  void Answer() { ahead_.AnswerOutcomes(round_, running_, &drafters_); }

  int records_ = 0;
  int restarts_ = 0;
  std::vector<std::string> warnings_;
  std::size_t expected_warnings_ = 0;
  SpeculationAhead ahead_;
  Drafters drafters_{{}, RetrievalBudget({}, 63), nullptr, {}, 16, 2};
  RunningSet running_;
  Round round_;
};

TEST_F(SpeculationAheadTest, AMissIsAnsweredByTheFallback) {
  Sequence* sequence = Add(1, Fallback::kNgram);
  const int before = records_;
  Answer();
  EXPECT_EQ(sequence->hit, false);
  EXPECT_EQ(sequence->proposal.source, ProposalSource::kNgram);
  EXPECT_EQ(sequence->stats.lookups_full, 1);
  EXPECT_EQ(sequence->stats.fallbacks, 1);
  EXPECT_GT(records_, before);  // The speculator is told.
}

TEST_F(SpeculationAheadTest, WaitsForADraftOnlyWhereThatHoldsNobody) {
  Sequence* sequence = Add(1, Fallback::kJit);
  Answer();
  EXPECT_TRUE(sequence->awaits_jit);
  Sequence* other = Add(2, Fallback::kJit);
  other->opened = false;  // As a sequence of another mode: it has no lookup, and must not wait.
  Answer();
  EXPECT_FALSE(sequence->awaits_jit);
}

TEST_F(SpeculationAheadTest, ASpeculatorThatDoesNotAnswerIsReplaced) {
  Sequence* sequence = Add(1, Fallback::kJit);
  Answer();
  ASSERT_TRUE(sequence->awaits_jit);
  const std::int64_t start = NowNs();
  ahead_.AwaitProposals(running_);
  EXPECT_GE(NowNs() - start, ahead_.speculator().ProposalPatienceNs(2));
  EXPECT_FALSE(sequence->awaits_jit);
  EXPECT_EQ(sequence->proposal.size(), 0) << "the round goes on without one";
  EXPECT_EQ(restarts_, 1);
  expected_warnings_ = 2;  // It is lost, and it was started again.
  Answer();
  EXPECT_FALSE(sequence->awaits_jit) << "until the next one is ready";
}

TEST_F(SpeculationAheadTest, OpensASequenceOnceAndForgetsItAtTheEnd) {
  Sequence* sequence = Add(1, Fallback::kNone);
  const int before = records_;
  ahead_.Open(sequence);
  EXPECT_EQ(records_, before);
  sequence->awaits_jit = true;
  ahead_.Close(sequence);
  EXPECT_FALSE(sequence->opened);
  EXPECT_FALSE(sequence->awaits_jit);
  Answer();
  EXPECT_FALSE(sequence->hit.has_value());
}

}  // namespace
}  // namespace foretoken
