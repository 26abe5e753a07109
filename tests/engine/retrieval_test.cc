// Retrieval from a live datastore: what was learned makes rounds longer and changes no token.

#include <gtest/gtest.h>

#include <optional>

#include "base/files/temporary_testing.h"
#include "base/numbers/integers.h"
#include "core/datastore/datastore_tenant.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

class LiveDatastore : public testing::Test {
 protected:
  LiveDatastore() {
    const Tokenizer& tokenizer = *BundledTarget()->tokenizer;
    DatastoreOptions options;
    options.tokenizer = {"demo-target", tokenizer.fingerprint(), tokenizer.vocabulary()};
    auto opened = DatastoreDirectory::Open(folder_.path(), options, /*learn=*/true);
    EXPECT_TRUE(opened.ok());
    directory_ = std::move(*opened);
  }

  // Notes the largest proposal too.
  struct Rounds : Collector {
    void OnRound(SequenceId /*sequence*/, const RoundRecord& round) override {
      largest = std::max(largest, Int(round.proposed.size()));
    }
    int largest = 0;
  };
  struct Run {
    std::vector<std::vector<Token>> tokens;
    int rounds = 0;
    std::int64_t proposed = 0;
    std::int64_t accepted = 0;
    int largest = 0;  // Proposal.
  };
  Run Decode(Mode mode, const std::shared_ptr<DatastoreTenant>& tenant, bool learn) {
    return Decode(mode, {.plan = {.lookahead = 15}, .max_batch = 2}, tenant, learn);
  }
  Run Decode(Mode mode, const EngineConfig& options, const std::shared_ptr<DatastoreTenant>& tenant,
             bool learn, const MeasuredTimes& times = {}) {
    auto engine = MakeEngine(mode, options, BundledTarget(), BundledDraft(), {.known = times});
    EXPECT_TRUE(engine.ok());
    Rounds collector;
    Run run;
    std::vector<SequenceId> ids;
    for (const auto& prompt : StoryPrompts()) {
      ids.push_back(*(*engine)->Submit({.prompt = prompt,
                                        .sampling = {.temperature = 0.5F, .seed = 3},
                                        .stop = {.max_tokens = 80},
                                        .datastore = tenant,
                                        .learn = learn,
                                        .listener = &collector}));
    }
    (*engine)->RunUntilIdle();
    EXPECT_TRUE(directory_->Flush().ok());
    for (const SequenceId id : ids) {
      run.tokens.push_back(collector.outputs[id].tokens);
      const RequestStats& stats = collector.outputs[id].stats;
      run.rounds += stats.rounds;
      run.proposed += stats.proposed;
      run.accepted += stats.accepted;
    }
    run.largest = collector.largest;
    return run;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<DatastoreDirectory> directory_;
};

TEST_F(LiveDatastore, LearnsFromOutputsOfItsOwnNamespace) {
  const std::shared_ptr<DatastoreTenant> alice = *directory_->Tenant("alice");
  const std::shared_ptr<DatastoreTenant> bob = *directory_->Tenant("bob");
  const Run truth = Decode(Mode::kAr, nullptr, false);
  const Run cold = Decode(Mode::kSssd, alice, /*learn=*/false);
  EXPECT_EQ(cold.tokens, truth.tokens);
  EXPECT_TRUE(alice->Segments().empty());  // Opted out.

  EXPECT_EQ(Decode(Mode::kSssd, alice, /*learn=*/true).tokens, truth.tokens);
  const Run warm = Decode(Mode::kSssd, alice, /*learn=*/false);
  EXPECT_EQ(warm.tokens, truth.tokens);
  EXPECT_LT(2 * warm.rounds, cold.rounds);

  const Run other = Decode(Mode::kSssd, bob, /*learn=*/false);
  EXPECT_EQ(other.tokens, truth.tokens);
  EXPECT_EQ(other.rounds, cold.rounds);

  const Run rest = Decode(Mode::kRest, alice, /*learn=*/false);
  EXPECT_EQ(rest.tokens, truth.tokens);
  EXPECT_LT(2 * rest.rounds, truth.rounds);
}

TEST_F(LiveDatastore, SpeculatesBesideTheDraft) {
  const std::shared_ptr<DatastoreTenant> alice = *directory_->Tenant("alice");
  const Run truth = Decode(Mode::kAr, alice, /*learn=*/true);
  for (const Fallback fallback : {Fallback::kNone, Fallback::kRetrieval, Fallback::kJit}) {
    for (const int width : {1, 2}) {
      EngineConfig options{.plan = {.lookahead = 4}, .max_batch = 2};
      options.plan.tree_width = width;
      options.plan.fallback = fallback;
      const Run run = Decode(Mode::kSsd, options, alice, /*learn=*/false);
      EXPECT_EQ(run.tokens, truth.tokens) << FallbackName(fallback) << ", width " << width;
      EXPECT_LT(run.rounds, truth.rounds);
    }
  }
  // A fallback whose proposals are as long as the rule says for two sequences, or as pays.
  for (const int length : {kKneeSpeculationLength, kAutoSpeculationLength}) {
    EngineConfig options{.plan = {.lookahead = 4}, .max_batch = 2};
    const MeasuredTimes times{.row_times = TimeTable::Line(1, 0.1), .knee_rows = 6};
    options.plan.fallback = Fallback::kRetrieval;
    options.plan.speculation_length = length;
    const Run run = Decode(Mode::kSsd, options, alice, /*learn=*/false, times);
    EXPECT_EQ(run.tokens, truth.tokens);
    EXPECT_LT(run.rounds, truth.rounds);
  }
}

TEST_F(LiveDatastore, ProposalsAreAsLongAsTheSpeculationLengthSays) {
  const std::shared_ptr<DatastoreTenant> alice = *directory_->Tenant("alice");
  const Run truth = Decode(Mode::kAr, alice, /*learn=*/true);
  const auto decode = [&](std::optional<int> speculation_length, int knee_rows) {
    EngineConfig options{.plan = {.lookahead = 2}, .max_batch = 2};
    MeasuredTimes times;
    if (knee_rows > 0) times = {.row_times = TimeTable::Line(1, 0.1), .knee_rows = knee_rows};
    options.plan.speculation_length = speculation_length;
    Run run = Decode(Mode::kSssd, options, alice, /*learn=*/false, times);
    EXPECT_EQ(run.tokens, truth.tokens);
    return run.largest;
  };
  EXPECT_EQ(decode(std::nullopt, 0), 2);
  EXPECT_EQ(decode(16, 0), 15);
  // The last sequence is alone in the batch: 12 rows, then.
  EXPECT_EQ(decode(kKneeSpeculationLength, 12), 11);
  EXPECT_EQ(decode(kKneeSpeculationLength, 1), 1);
  EXPECT_GT(decode(kKneeSpeculationLength, 0), 0);  // By the knee of this machine.
}

// A fallback's proposals need not end where the draft's do: nobody has to draft them.
TEST_F(LiveDatastore, FallsBackOnProposalsBeyondTheLookahead) {
  const std::shared_ptr<DatastoreTenant> alice = *directory_->Tenant("alice");
  const Run truth = Decode(Mode::kAr, alice, /*learn=*/true);
  const auto largest = [&](std::optional<int> speculation_length, const TimeTable& row_times) {
    EngineConfig options{.plan = {.lookahead = 2}, .max_batch = 2};
    options.plan.primary = options.plan.after_fallback = UniformFanout(1, 2);  // Many misses.
    options.plan.fallback = Fallback::kRetrieval;
    options.plan.speculation_length = speculation_length;
    const Run run = Decode(Mode::kSsd, options, alice, /*learn=*/false, {.row_times = row_times});
    EXPECT_EQ(run.tokens, truth.tokens);
    return run.largest;
  };
  EXPECT_EQ(largest(16, {}), 15);
  EXPECT_GT(largest(std::nullopt, TimeTable::Line(1, 0)), 8);
}

// Where rows are all but free retrieval proposes what it finds; where each costs as much as a pass
// it proposes only what is all but certain, and by and by nothing of what does not come true.
TEST_F(LiveDatastore, ProposesWhatIsWorthItsRow) {
  const std::shared_ptr<DatastoreTenant> alice = *directory_->Tenant("alice");
  const Run truth = Decode(Mode::kAr, alice, /*learn=*/true);
  const auto decode = [&](const TimeTable& row_times) {
    EngineConfig options{.max_batch = 2};
    options.plan.speculation_length = kAutoSpeculationLength;
    const Run run = Decode(Mode::kSssd, options, alice, /*learn=*/false,
                           {.row_times = row_times, .knee_rows = 1});
    EXPECT_EQ(run.tokens, truth.tokens);
    return run;
  };
  const Run free = decode(TimeTable::Line(1, 0));
  const Run dear = decode(TimeTable::Line(1e-6, 1));
  EXPECT_GT(free.largest, 8);
  EXPECT_LT(dear.proposed, free.proposed / 2);
  EXPECT_GT(static_cast<double>(dear.accepted) / static_cast<double>(dear.proposed + 1),
            static_cast<double>(free.accepted) / static_cast<double>(free.proposed));
}

}  // namespace
}  // namespace foretoken
