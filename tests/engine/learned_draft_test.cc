// Drafts that are trained to draft: the same tokens come out in every setting, and what is drafted
// depends on the committed tokens and their true features only.

#include "tests/engine/learned_draft_testing.h"

namespace foretoken::learned_testing {
namespace {

TEST_P(LearnedDraft, EmitsTheTokensOfArAndDraftsOfTrueFeatures) {
  for (const float temperature : {0.0F, 0.7F, 1.3F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 3};
    const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling);
    for (const int batch : {1, 3, 6}) {
      for (const bool prefix_cache : {false, true}) {
        const EngineConfig options{
            .plan = {.lookahead = 3}, .max_batch = batch, .prefix_cache = prefix_cache};
        const Run run = Decode(Mode::kSd, options, sampling);
        EXPECT_EQ(run.tokens, truth.tokens) << "T " << temperature << ", batch " << batch;
        EXPECT_GT(run.accepted, 0);
        EXPECT_GT(run.compared, 200);
      }
    }
  }
}

TEST_P(LearnedDraft, TreesEmitTheTokensOfAr) {
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 5};
    constexpr int kTokens = 60;
    const Run truth =
        Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling, 0, kTokens);
    const EngineConfig options{.plan = {.lookahead = 4, .tree_width = 4, .max_nodes = 20},
                               .max_batch = 3};
    const Run run = Decode(Mode::kSd, options, sampling, 0, kTokens);
    EXPECT_EQ(run.tokens, truth.tokens) << "T " << temperature;
    EXPECT_GT(run.accepted, 25);  // Random drafts that have few tokens to choose from.
  }
}

TEST_P(LearnedDraft, PreemptionAndPrefixesInPiecesChangeNothing) {
  const SamplingParams sampling{.temperature = 0.9F, .seed = 8};
  const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling);
  for (const bool prefix_cache : {false, true}) {
    const EngineConfig options{
        .plan = {.lookahead = 3}, .max_batch = 3, .prefill_chunk = 7, .prefix_cache = prefix_cache};
    const Run run = Decode(Mode::kSd, options, sampling, /*preempt_every=*/9);
    EXPECT_EQ(run.tokens, truth.tokens);
    EXPECT_GT(run.accepted, 0);
    EXPECT_GT(run.compared, 200);
  }
}

TEST_P(LearnedDraft, SsdEmitsTheTokensOfAr) {
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 4};
    const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling);
    std::int64_t hits = 0;
    for (const int batch : {1, 3}) {
      for (const int tree_width : {1, 2}) {
        // Where nobody waits, what was prepared too late shows as well.
        awaits_speculator_ = batch == 1;
        EngineConfig options{.plan = {.lookahead = 2, .tree_width = tree_width},
                             .max_batch = batch};
        options.plan.primary = options.plan.after_fallback = UniformFanout(8, 2);
        const Run run = Decode(Mode::kSsd, options, sampling, batch == 3 ? 11 : 0);
        EXPECT_EQ(run.tokens, truth.tokens) << "T " << temperature << ", batch " << batch;
        EXPECT_GT(run.accepted, 0);
        hits += run.hits;
      }
    }
    EXPECT_GT(hits, 0) << "T " << temperature;
  }
}

// What is drafted just in time is drafted of true features, as in SD.
TEST_P(LearnedDraft, JustInTimeIsWhatSdProposes) {
  const SamplingParams sampling{.temperature = 0.9F, .seed = 6};
  EngineConfig options{
      .plan = {.lookahead = 3, .fallback = Fallback::kJit}, .max_cache_budget = 1, .max_batch = 1};
  const Run sd = Decode(Mode::kSd, options, sampling);
  // Next to nothing is prepared.
  options.plan.primary = options.plan.after_fallback = {.at = {0, 0, 0, 1}};
  const Run run = Decode(Mode::kSsd, options, sampling);
  EXPECT_EQ(run.tokens, sd.tokens);
  EXPECT_LT(run.hits, run.rounds / 20);
  // Rounds before the speculator has read the prompt have no proposal.
  EXPECT_NEAR(static_cast<double>(run.accepted), static_cast<double>(sd.accepted),
              0.1 * static_cast<double>(sd.accepted));
}

// With heads of which there are fewer than are asked for in places.
std::vector<Kind> AllKinds() {
  std::vector<Kind> kinds = Kinds();
  kinds.push_back({"hydra_of_three", Heads(3)});
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, LearnedDraft, testing::ValuesIn(AllKinds()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace foretoken::learned_testing
