// Drafts that say several positions in a pass: each folder of tests/golden/parallel, the logits of
// every depth against those that another program computes from the whole text and its masks.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/numbers/integers.h"
#include "core/draft/model/draft_model.h"
#include "core/model/families/read_config.h"
#include "core/model/model_testing.h"
#include "core/model/model_weights.h"
#include "core/model/open_checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

class ParallelGolden : public testing::TestWithParam<BackendCase> {};

TEST_P(ParallelGolden, EachDepthHasTheLogitsOfTheOtherProgram) {
  const std::filesystem::path folder =
      std::filesystem::path(FORETOKEN_SOURCE_DIR) / "tests/golden/parallel/pard";
  std::ifstream file(folder / "golden.json");
  const auto golden = Json::Parse(file);
  const auto tokens = golden["token_ids"].get<std::vector<Token>>();
  const auto checkpoint = OpenCheckpoint(folder, "");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto config = ReadModelConfig(*checkpoint);
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto backend = GetParam().make(Precision::kF32);
  const auto weights = LoadWeights(*checkpoint, *config, backend.get());
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  const auto model = (*weights)->MakeModel(backend.get());

  DraftModel draft(model.get(), 1, 128, 0);
  DraftTrunk trunk;
  trunk.Begin(draft, false);
  for (const auto& pass : golden["passes"]) {
    const auto committed = pass["committed"].get<std::int32_t>();
    trunk.Commit(
        std::span<const Token>(tokens).subspan(trunk.committed(), committed - trunk.committed()),
        draft);
    const int depths = pass["logits"].size();
    trunk.Plan(/*width=*/1, depths, depths, /*temperature=*/0, draft);
    draft.batch.Clear();
    TreeNodes nodes;
    ASSERT_TRUE(trunk.AppendDraftRows(draft, &nodes));
    ASSERT_EQ(trunk.depths(draft), depths);
    Logits logits = model->Forward(draft.batch, draft.kv.store());
    for (const auto& expected : pass["logits"]) {
      const auto row = expected.get<std::vector<float>>();
      EXPECT_LT(Apart({logits.values, row.size()}, row), 1e-5F) << "behind " << committed;
      logits = logits.Row(1, model->config().vocabulary);
    }
    // The next pass begins behind what was committed: nothing of this one's masks is kept.
    Ranking some;
    some.push_back({tokens[Size(committed) % tokens.size()]});
    trunk.TakeRanking(0, some);
    for (int depth = 1; depth < depths; ++depth) {
      for (const int node : WantedAt(trunk.tree, trunk.shape, depth)) {
        trunk.TakeRootsRanking(node, some);
      }
    }
    EXPECT_EQ(trunk.tree.proposal().size(), depths);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ParallelGolden, testing::ValuesIn(BackendCases()),
                         [](const auto& test) { return TestName(test.param.name); });

}  // namespace
}  // namespace foretoken
