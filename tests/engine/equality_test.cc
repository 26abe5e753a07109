// The promise (docs/understand/verification.md): every mode emits the tokens of AR, bit for bit.

#include <gtest/gtest.h>

#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

struct EqualitySetting {
  std::string name;
  SamplingParams sampling;
};

std::vector<EqualitySetting> EqualitySettings() {
  std::vector<EqualitySetting> settings;
  for (const float temperature : {0.0F, 0.7F, 1.0F}) {
    SamplingParams plain{.temperature = temperature, .seed = 11};
    settings.push_back({"T=" + std::to_string(temperature), plain});
  }
  SamplingParams filters{
      .temperature = 0.9F, .top_k = 40, .top_p = 0.9F, .min_p = 0.02F, .seed = 5};
  settings.push_back({"filters", filters});
  SamplingParams penalties{.temperature = 0.8F,
                           .repetition_penalty = 1.2F,
                           .frequency_penalty = 0.3F,
                           .presence_penalty = 0.2F,
                           .seed = 9};
  penalties.logit_bias = {{300, 2.0F}, {400, -5.0F}};
  settings.push_back({"penalties", penalties});
  SamplingParams greedy_penalty{.repetition_penalty = 1.3F};
  settings.push_back({"greedy with penalty", greedy_penalty});
  return settings;
}

constexpr StopRules kEqualityStop{.max_tokens = 64};

// AR, one sequence at a time, without a prefix cache: what everything else must equal.
const std::vector<std::vector<Token>>& EqualityTruth(const EqualitySetting& setting) {
  static std::map<std::string, std::vector<std::vector<Token>>> known;
  auto& truth = known[setting.name];
  if (truth.empty()) {
    const auto engine = Make(Mode::kAr, {.max_batch = 1, .prefix_cache = false});
    truth = TokensOf(Generate(*engine, StoryPrompts(), setting.sampling, kEqualityStop));
  }
  return truth;
}

SpeculationPlan NarrowPlan() {
  SpeculationPlan plan{.lookahead = 3, .fallback = Fallback::kNone};
  plan.primary = UniformFanout(1, 3);
  plan.after_fallback = UniformFanout(2, 3);
  return plan;
}

SpeculationPlan OpenPlan(FanoutRule rule) {
  SpeculationPlan plan{.lookahead = 4, .fallback = Fallback::kAuto};
  plan.fanout = rule;
  return plan;
}

SpeculationPlan Tree(int width, int lookahead, int nodes) {
  return {.lookahead = lookahead, .tree_width = width, .max_nodes = nodes};
}

struct EqualityCase {
  std::string name;
  Mode mode;
  EngineConfig options;
  MeasuredTimes times = {};
  std::int64_t delay_us = 0;
};

void PrintTo(const EqualityCase& test, std::ostream* out) { *out << test.name; }

class Equality : public testing::TestWithParam<EqualityCase> {};

TEST_P(Equality, EveryTokenEqualsAr) {
  EngineConfig options = GetParam().options;
  options.speculator_delay_us = GetParam().delay_us;
  const auto engine =
      Make(GetParam().mode, options, BundledDraft(), BundledTarget(), {.known = GetParam().times});
  for (const EqualitySetting& setting : EqualitySettings()) {
    const auto outputs = Generate(*engine, StoryPrompts(), setting.sampling, kEqualityStop);
    EXPECT_EQ(TokensOf(outputs), EqualityTruth(setting)) << setting.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Equality,
    testing::ValuesIn(std::vector<EqualityCase>{
        EqualityCase{"ArBatch4", Mode::kAr, {.max_batch = 4}},
        EqualityCase{"ArSmallChunks", Mode::kAr, {.max_batch = 3, .prefill_chunk = 5}},
        EqualityCase{"SdBatch1", Mode::kSd, {.max_batch = 1}},
        EqualityCase{"SdBatch4", Mode::kSd, {.plan = {.lookahead = 4}, .max_batch = 4}},
        EqualityCase{"SsdJitBatch1", Mode::kSsd, {.max_batch = 1}},
        EqualityCase{"SsdJitBatch4", Mode::kSsd, {.max_batch = 4}},
        EqualityCase{"SdTreeBatch1", Mode::kSd, {.plan = {.tree_width = 3}, .max_batch = 1}},
        EqualityCase{"SdTreeBatch4", Mode::kSd, {.plan = Tree(2, 8, 12), .max_batch = 4}},
        EqualityCase{"SdTreeDeepBatch3", Mode::kSd, {.plan = Tree(4, 3, 63), .max_batch = 3}},
        EqualityCase{"SdTreeShallow", Mode::kSd, {.plan = Tree(4, 1, 3), .max_batch = 2}},
        EqualityCase{"SsdTreeBatch1", Mode::kSsd, {.plan = {.tree_width = 3}, .max_batch = 1}},
        EqualityCase{"SsdTreeBatch4", Mode::kSsd, {.plan = Tree(2, 8, 12), .max_batch = 4}},
        EqualityCase{"SsdTreeShallow", Mode::kSsd, {.plan = Tree(4, 1, 4), .max_batch = 2}},
        EqualityCase{"SsdTreeNgram",
                     Mode::kSsd,
                     {.plan = {.tree_width = 3, .fallback = Fallback::kNgram}, .max_batch = 3}},
        EqualityCase{"SsdTreeSlowSpeculator",
                     Mode::kSsd,
                     {.plan = Tree(3, 4, 20), .max_batch = 2},
                     {},
                     3000},
        EqualityCase{
            "SsdTreeTinyPool",
            Mode::kSsd,
            {.plan = Tree(3, 6, 31), .max_batch = 5, .max_context = 160, .kv_tokens = 192}},
        EqualityCase{
            "SdTreeTinyPool",
            Mode::kSd,
            {.plan = Tree(3, 6, 63), .max_batch = 5, .max_context = 160, .kv_tokens = 160}},
        EqualityCase{
            "SsdNgram", Mode::kSsd, {.plan = {.fallback = Fallback::kNgram}, .max_batch = 4}},
        EqualityCase{"SsdNone", Mode::kSsd, {.plan = NarrowPlan()}},
        EqualityCase{
            "SsdRandom", Mode::kSsd, {.plan = {.fallback = Fallback::kRandom}, .max_batch = 3}},
        EqualityCase{"SsdRetrieval", Mode::kSsd, {.plan = {.fallback = Fallback::kRetrieval}}},
        EqualityCase{"Sssd", Mode::kSssd, {.plan = {.lookahead = 15}, .max_batch = 3}},
        EqualityCase{"SssdByKnee",
                     Mode::kSssd,
                     {
                         .plan = {.speculation_length = kKneeSpeculationLength},
                     },
                     {.row_times = TimeTable::Line(1, 0.1), .knee_rows = 24}},
        EqualityCase{"SssdByPrice",
                     Mode::kSssd,
                     {.plan = {.speculation_length = kAutoSpeculationLength}, .max_batch = 3},
                     {.row_times = TimeTable::Line(1, 0.02), .knee_rows = 24}},
        EqualityCase{"SsdRetrievalByPrice",
                     Mode::kSsd,
                     {.plan = {.fallback = Fallback::kRetrieval}},
                     {.row_times = TimeTable::Line(1, 0.02)}},
        EqualityCase{"Trie", Mode::kTrie, {.plan = {.lookahead = 7}, .max_batch = 2}},
        EqualityCase{"Anpd", *ParseMode("anpd"), {.plan = {.lookahead = 5}, .max_batch = 3}},
        EqualityCase{"Suffix", *ParseMode("suffix"), {.plan = {.lookahead = 15}, .max_batch = 3}},
        EqualityCase{
            "Protocol", *ParseMode("protocol"), {.plan = {.lookahead = 12}, .max_batch = 3}},
        EqualityCase{"Ngram", Mode::kNgram, {.max_batch = 3}},
        EqualityCase{"StagedBatch1", kStaged, {.max_batch = 1}},
        EqualityCase{"StagedByRetrieval",
                     kStaged,
                     {.max_batch = 4, .stages = {DrafterId::kModel, DrafterId::kRetrieval}}},
        EqualityCase{"EnsembleBatch1", kEnsemble, {.max_batch = 1}},
        EqualityCase{
            "EnsembleBatch4", kEnsemble, {.plan = {.speculation_length = 20}, .max_batch = 4}},
        EqualityCase{
            "StagedTinyPool", kStaged, {.max_batch = 5, .max_context = 160, .kv_tokens = 192}},
        EqualityCase{"AutoBatch1", Mode::kAuto, {.max_batch = 1}},
        EqualityCase{"AutoBatch4", Mode::kAuto, {.max_batch = 4}},
        EqualityCase{
            "SsdPlannedFallbackAuto", Mode::kSsd, {.plan = OpenPlan(FanoutRule::kPlanned)}},
        EqualityCase{"SsdGeometricFallbackAuto",
                     Mode::kSsd,
                     {.plan = OpenPlan(FanoutRule::kGeometric), .max_batch = 1}},
        EqualityCase{"SsdSlowSpeculator", Mode::kSsd, {.max_batch = 2}, {}, 3000},
        // Room for little more than one sequence: preemption by necessity.
        EqualityCase{
            "SsdTinyPool", Mode::kSsd, {.max_batch = 5, .max_context = 160, .kv_tokens = 192}},
        EqualityCase{
            "SdTinyPool", Mode::kSd, {.max_batch = 5, .max_context = 160, .kv_tokens = 192}}}),
    [](const auto& test) { return test.param.name; });

// Without a draft mode auto is left with autoregression and prompt lookup.
TEST(EqualityUnder, AutoWithoutADraft) {
  const auto engine = Make(Mode::kAuto, {.max_batch = 4}, DraftOptions{});
  EXPECT_FALSE(engine->Offers(Mode::kSd));
  for (const EqualitySetting& setting : {EqualitySettings()[0], EqualitySettings()[2]}) {
    const auto outputs = Generate(*engine, StoryPrompts(), setting.sampling, kEqualityStop);
    EXPECT_EQ(TokensOf(outputs), EqualityTruth(setting)) << setting.name;
  }
}

TEST(EqualityUnder, ForcedPreemption) {
  for (const Mode mode : {Mode::kAr, Mode::kSd, Mode::kSsd}) {
    const auto engine = Make(mode, {.max_batch = 3});
    const EqualitySetting setting = EqualitySettings()[2];
    Collector collector;
    const auto prompts = StoryPrompts();
    std::vector<SequenceId> ids;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      SamplingParams sampling = setting.sampling;
      sampling.seed += i;
      ids.push_back(*engine->Submit({.prompt = prompts[i],
                                     .sampling = sampling,
                                     .stop = kEqualityStop,
                                     .listener = &collector}));
    }
    int preemptions = 0;
    for (int step = 0; engine->Step(); ++step) {
      if (step % 7 == 3) ForcePreemption(*engine);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(collector.outputs[ids[i]].tokens, EqualityTruth(setting)[i]) << ModeName(mode);
      preemptions += collector.outputs[ids[i]].stats.preemptions;
    }
    EXPECT_GT(preemptions, 3);
    EXPECT_TRUE(engine->CheckIdle().ok());
  }
}

// A drafter that knows what AR will say and proposes trees around it, some branches right, most
// wrong: verification must find its way and leave the KV in order.
class OracleTreeDrafter : public Drafter {
 public:
  explicit OracleTreeDrafter(std::vector<std::vector<Token>> full) : full_(std::move(full)) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (DraftContext& context : contexts) {
      Proposal& proposal = *context.proposal;
      proposal.Clear();
      proposal.source = ProposalSource::kDraft;
      const auto truth = TruthFor(context.tokens);
      // Level by level: a decoy, then the true token, then another decoy below a random node.
      int parent = 0;
      for (int depth = 0; depth < 4; ++depth) {
        if (proposal.size() + 3 > context.lookahead) break;
        const std::size_t at = context.tokens.size() + depth;
        if (at >= truth.size()) break;
        const Token right = truth[at];
        Add(&proposal, parent, (right + 1 + Next() % 50) % 2048);
        if (Next() % 4 != 0) {
          Add(&proposal, parent, right);
          const int node = proposal.size();
          Add(&proposal, static_cast<int>(Next() % node), (right + 60 + Next() % 50) % 2048);
          parent = node;
        }
      }
    }
  }
  void Forget(SequenceId) override {}

 private:
  static void Add(Proposal* proposal, int parent, Token token) {
    proposal->tokens.push_back(token);
    proposal->parents.push_back(static_cast<std::int8_t>(parent));
  }
  std::span<const Token> TruthFor(std::span<const Token> prefix) const {
    for (const auto& tokens : full_) {
      if (tokens.size() >= prefix.size() &&
          std::equal(prefix.begin(), prefix.end(), tokens.begin())) {
        return tokens;
      }
    }
    return {};
  }
  std::uint32_t Next() { return state_ = state_ * 1664525U + 1013904223U, state_ >> 8; }

  std::vector<std::vector<Token>> full_;
  std::uint32_t state_ = 1;
};

// One engine, sequences of every mode side by side, and each changes its mode as it goes.
TEST(EqualityUnder, ChangingPlans) {
  const std::vector<Mode> modes = {Mode::kSsd, Mode::kAr, Mode::kSd, Mode::kNgram, kSd2};
  DraftOptions second;  // The target itself.
  second.source = {.path = BundledModel("demo-target"), .weights = "q4_0"};
  auto made = MakeEngine(
      modes, {.max_nodes = 31, .max_lookahead = 8, .max_cache_budget = 60, .max_batch = 5},
      BundledTarget(), std::array{BundledDraft(), second});
  ASSERT_TRUE(made.ok());
  Engine& engine = **made;
  const EqualitySetting setting = EqualitySettings()[1];
  const auto prompts = StoryPrompts();
  Collector collector;
  std::vector<SequenceId> ids;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Request request{.prompt = prompts[i],
                    .sampling = setting.sampling,
                    .stop = kEqualityStop,
                    .plan = PlanOptions{.mode = modes[i % modes.size()], .lookahead = 5},
                    .listener = &collector};
    request.sampling.seed += i;
    ids.push_back(*engine.Submit(std::move(request)));
  }
  for (int step = 0; engine.Step(); ++step) {
    if (step % 4 != 0) continue;
    const PlanOptions plan{.mode = modes[step / 4 % modes.size()],
                           .lookahead = 1 + step % 8,
                           .tree_width = 1 + step / 4 % 3};
    ASSERT_TRUE(engine.ChangePlan(ids[step / 4 % ids.size()], plan).ok());
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(collector.outputs[ids[i]].tokens, EqualityTruth(setting)[i]);
  }
  EXPECT_TRUE(engine.CheckIdle().ok());
}

TEST(EqualityUnder, TreeProposals) {
  const EqualitySetting setting = EqualitySettings()[2];
  const auto prompts = StoryPrompts();
  std::vector<std::vector<Token>> full;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    full.push_back(prompts[i]);
    full.back().insert(full.back().end(), EqualityTruth(setting)[i].begin(),
                       EqualityTruth(setting)[i].end());
  }
  LoadedModel* target = BundledTarget();
  Proposers proposers;
  proposers.before[DrafterId::kModel] = std::make_unique<OracleTreeDrafter>(full);
  auto engine = CreateEngine({.plan = {.mode = Mode::kSd, .lookahead = 20}, .max_batch = 3},
                             target->model.get(), target->device.get(), target->tokenizer.get(),
                             std::move(proposers));
  ASSERT_TRUE(engine.ok());
  const auto outputs = Generate(**engine, prompts, setting.sampling, kEqualityStop);
  EXPECT_EQ(TokensOf(outputs), EqualityTruth(setting));
  int accepted = 0;
  for (const auto& output : outputs) accepted += output.stats.accepted;
  EXPECT_GT(accepted, 100);
}

TEST(Speculation, AcceptsAndHits) {
  const auto sd = Make(Mode::kSd, {.max_batch = 1});
  const auto ssd = Make(Mode::kSsd, {.max_batch = 1});
  for (Engine* engine : {sd.get(), ssd.get()}) {
    int rounds = 0;
    int tokens = 0;
    int hits = 0;
    for (const auto& output : Generate(*engine, StoryPrompts(), {}, kEqualityStop)) {
      rounds += output.stats.rounds;
      tokens += output.stats.output_tokens;
      hits += output.stats.hits_full + output.stats.hits_partial;
      EXPECT_LE(output.stats.hits_full, output.stats.lookups_full);
    }
    // The card of the pair gives an acceptance of 0.85 at T = 0: far more than one token a round.
    EXPECT_GT(tokens, 2 * rounds);
    if (engine == ssd.get()) {
      EXPECT_GT(hits, rounds / 4);
    }
  }
}

}  // namespace
}  // namespace foretoken
