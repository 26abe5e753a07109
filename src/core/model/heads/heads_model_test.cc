#include "core/model/heads/heads_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kHeadsVocabulary = 330;
constexpr int kHeadsHidden = 96;
constexpr int kHeadCount = 4;

ModelConfig HeadsConfig() {
  ModelConfig config;
  config.hidden = kHeadsHidden;
  config.vocabulary = kHeadsVocabulary;
  config.max_positions = 64;
  config.feature = {.join = FeatureSpec::Join::kHeads,
                    .points = {TapShape::kFinalState},
                    .tapped = kHeadsHidden,
                    .heads = kHeadCount,
                    .head_blocks = 2};
  config.parallel = {.positions = kHeadCount, .mask_token = 0, .block = kHeadCount};
  return config;
}

class HeadsModelTest : public testing::TestWithParam<BackendCase> {
 protected:
  ForwardRow RowOf(int state, int head) const {
    return {.feature = {.kept = states_.data() + std::ptrdiff_t{state} * kHeadsHidden},
            .block_left = kHeadCount - 1 - head};
  }
  std::vector<float> Said(const std::vector<ForwardRow>& rows, Interrupt interrupt = {}) {
    ForwardBatch batch;
    batch.rows = rows;
    const float* logits = model_->Forward(batch, kv_, interrupt).values;
    if (logits == nullptr) return {};
    const auto wanted = std::ranges::count_if(rows, &ForwardRow::wants_logits);
    return {logits, logits + wanted * kHeadsVocabulary};
  }

  std::unique_ptr<Backend> backend_ = GetParam().make(Precision::kF32);
  std::unique_ptr<Model> model_ = SyntheticModel(HeadsConfig(), 3, backend_.get());
  KvStore kv_ = backend_->AllocateKv(model_->KvShapeFor(1));
  std::vector<BFloat16> states_ = [] {
    std::vector<BFloat16> states;
    for (const Token token : RandomTokens(3 * kHeadsHidden, 2000)) {
      states.push_back(FloatToBFloat16(static_cast<float>(token - 1000) / 500));
    }
    return states;
  }();
};

// A row's logits, and the highest of each group, are its own, whatever else is in the pass.
TEST_P(HeadsModelTest, RowsOfManySequencesAreWhatEachIsAlone) {
  std::vector<ForwardRow> rows;
  std::vector<float> alone;
  for (int state = 0; state < 3; ++state) {
    rows.push_back(RowOf(state, 0));
    rows.back().wants_logits = false;  // As one that is read.
    for (int head = state; head < kHeadCount; ++head) {
      rows.push_back(RowOf(state, head));
      const auto said = Said({rows.back()});
      alone.insert(alone.end(), said.begin(), said.end());
    }
  }
  EXPECT_EQ(Said(rows), alone);
  EXPECT_NE(Said({RowOf(0, 0)}), Said({RowOf(0, 1)}));
  EXPECT_NE(Said({RowOf(0, 0)}), Said({RowOf(1, 0)}));

  ForwardBatch batch;
  batch.rows = rows;
  const Logits logits = model_->Forward(batch, kv_);
  for (std::int64_t row = 0; row < std::ssize(alone) / kHeadsVocabulary; ++row) {
    for (std::int64_t group = 0; group < Logits::Groups(kHeadsVocabulary); ++group) {
      const float* begin = logits.values + row * kHeadsVocabulary + group * kLogitGroup;
      const std::int64_t count =
          std::min<std::int64_t>(kLogitGroup, kHeadsVocabulary - group * kLogitGroup);
      EXPECT_EQ(logits.maxima[row * Logits::Groups(kHeadsVocabulary) + group],
                *std::max_element(begin, begin + count));
    }
  }
}

TEST_P(HeadsModelTest, GivesAPassUp) {
  const Interrupt raised{.raised = [](void* /*context*/) { return true; }};
  EXPECT_THAT(Said({RowOf(0, 0)}, raised), testing::IsEmpty());
  ForwardRow read = RowOf(0, 0);
  read.wants_logits = false;
  ForwardBatch batch;
  batch.rows = {read};
  EXPECT_NE(model_->Forward(batch, kv_).values, nullptr);  // Nothing is wanted, and nothing failed.
}

// Before the first state there is nothing to read.
TEST_P(HeadsModelTest, ReadsZerosWhereNothingIsKept) {
  std::fill_n(states_.begin(), kHeadsHidden, FloatToBFloat16(0));
  ForwardRow without = RowOf(0, 2);
  without.feature.kept = nullptr;
  EXPECT_EQ(Said({without}), Said({RowOf(0, 2)}));
}

INSTANTIATE_TEST_SUITE_P(All, HeadsModelTest, testing::ValuesIn(BackendCases()),
                         [](const auto& test) { return TestName(test.param.name); });

}  // namespace
}  // namespace foretoken
