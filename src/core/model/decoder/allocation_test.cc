#include <gtest/gtest.h>

#include "base/allocation_counter_testing.h"
#include "core/model/config/named_shapes.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

class AllocationTest : public testing::TestWithParam<BackendCase> {};

void CheckAllocations(const BackendCase& by, const Routing& routing) {
  const auto backend = by.make(Precision::kBF16);
  ModelConfig config = *NamedShape("draft-12m");
  config.vocabulary = 500;
  config.layers.resize(2);
  config.layers[1].mlp.routing = routing;
  config.max_positions = 128;
  const auto model = SyntheticModel(config, 1, backend.get());
  KvStore kv = backend->AllocateKv(model->KvShapeFor(4));
  const std::int32_t table[] = {0, 1, 2, 3};
  ForwardBatch batch;
  std::int32_t position = 0;
  const auto run = [&](int rows) {
    batch.Clear();
    batch.block_tables.push_back(table);
    for (int r = 0; r < rows; ++r, ++position) {
      batch.rows.push_back({position, {position, position, 0, position + 1, 0}, true});
    }
    return model->Forward(batch, kv).values;
  };
  run(17);
  const long before = allocations;
  for (const int rows : {1, 17, 5, 16, 1, 9}) ASSERT_NE(run(rows), nullptr);
  EXPECT_EQ(allocations, before);
}

TEST_P(AllocationTest, ForwardAllocatesOnlyToGrow) { CheckAllocations(GetParam(), {}); }

TEST_P(AllocationTest, SoDoExperts) { CheckAllocations(GetParam(), {.experts = 6, .chosen = 2}); }

INSTANTIATE_TEST_SUITE_P(Backends, AllocationTest, testing::ValuesIn(BackendCases()),
                         [](const auto& test) { return TestName(test.param.name); });

}  // namespace
}  // namespace foretoken
