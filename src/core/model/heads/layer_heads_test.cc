#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/heads/heads_models.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kLayerHeadsVocabulary = 330;
constexpr int kLayerHeadsHidden = 64;
constexpr int kLayerHeadCount = 3;
constexpr int kPositions = 5;

ModelConfig LayerHeadsConfig() {
  ModelConfig config = LlamaConfig({.hidden = kLayerHeadsHidden,
                                    .intermediate = 96,
                                    .layers = kLayerHeadCount,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_dim = 16,
                                    .vocabulary = kLayerHeadsVocabulary,
                                    .max_positions = 64});
  config.feature = {.join = FeatureSpec::Join::kLayerHeads,
                    .points = {2},
                    .tapped = kLayerHeadsHidden,
                    .leaves_normed = true};
  config.parallel = {.positions = kLayerHeadCount, .mask_token = 0, .block = kLayerHeadCount};
  return config;
}

// Two sequences, with features as a target keeps them.
class LayerHeadsTest : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    for (const Token token : RandomTokens(2 * kPositions * kLayerHeadsHidden, 2000)) {
      features_.push_back(FloatToBFloat16(static_cast<float>(token - 1000) / 500));
    }
  }
  // The row of a position, or that of a head which reads it.
  ForwardRow RowOf(int sequence, int position, int head = -1) const {
    const int number = sequence * kPositions + position;
    return {.place = {position, sequence * kBlockSize + position, sequence, position + 1, 0},
            .wants_logits = head >= 0,
            .feature = {.kept = features_.data() + std::ptrdiff_t{number} * kLayerHeadsHidden},
            .block_left = head < 0 ? 0 : kLayerHeadCount - 1 - head};
  }
  std::vector<float> Forward(const std::vector<ForwardRow>& rows) {
    ForwardBatch batch;
    batch.rows = rows;
    batch.block_tables = {&blocks_[0], &blocks_[1]};
    const float* logits = model_->Forward(batch, kv_).values;
    const auto wanted = std::ranges::count_if(rows, &ForwardRow::wants_logits);
    return {logits, logits + wanted * kLayerHeadsVocabulary};
  }

  std::unique_ptr<Backend> backend_ = GetParam().make(Precision::kF32);
  std::unique_ptr<Model> model_ = SyntheticModel(LayerHeadsConfig(), 3, backend_.get());
  KvStore kv_ = backend_->AllocateKv(model_->KvShapeFor(2));
  std::int32_t blocks_[2] = {0, 1};
  std::vector<BFloat16> features_;
};

// A row's logits are its own, whatever else is in the pass, how often it is in it, and however its
// sequence was read.
TEST_P(LayerHeadsTest, RowsOfManySequencesAreWhatEachIsAlone) {
  std::vector<float> alone;
  for (const int sequence : {0, 1}) {
    for (int position = 0; position < kPositions; ++position) Forward({RowOf(sequence, position)});
    for (int head = 0; head < kLayerHeadCount; ++head) {
      const auto said = Forward({RowOf(sequence, kPositions - 1, head)});
      alone.insert(alone.end(), said.begin(), said.end());
    }
  }
  kv_ = backend_->AllocateKv(model_->KvShapeFor(2));
  std::vector<ForwardRow> together;
  std::vector<ForwardRow> again;
  for (const int sequence : {0, 1}) {
    for (int position = 0; position < kPositions; ++position) {
      together.push_back(RowOf(sequence, position));
    }
    for (int head = 0; head < kLayerHeadCount; ++head) {
      together.push_back(RowOf(sequence, kPositions - 1, head));
      for (const int repeated : {0, 1}) {
        if (sequence == repeated || head == 1) again.push_back(together.back());
      }
    }
  }
  EXPECT_EQ(Forward(together), alone);
  const auto twice = Forward(again);
  const std::vector<int> heads = {0, 1, 1, 2, 3, 4, 4, 5};  // Rows of `alone`.
  for (std::size_t row = 0; row < heads.size(); ++row) {
    const auto* of_row = twice.data() + row * kLayerHeadsVocabulary;
    const auto* expected = alone.data() + heads[row] * std::ptrdiff_t{kLayerHeadsVocabulary};
    EXPECT_TRUE(std::equal(of_row, of_row + kLayerHeadsVocabulary, expected)) << row;
  }
}

TEST_P(LayerHeadsTest, SeeAllPositionsAndEachItsOwnLayer) {
  std::vector<ForwardRow> rows = {RowOf(0, 0), RowOf(0, 1)};
  for (int head = 0; head < kLayerHeadCount; ++head) rows.push_back(RowOf(0, 1, head));
  const auto said = Forward(rows);
  EXPECT_FALSE(std::equal(said.begin(), said.begin() + kLayerHeadsVocabulary,
                          said.begin() + kLayerHeadsVocabulary));
  std::ranges::fill(std::span(features_).first(kLayerHeadsHidden), FloatToBFloat16(0.25F));
  EXPECT_NE(Forward(rows), said);
}

// Before the first position there is nothing to read.
TEST_P(LayerHeadsTest, SayNothingOfNoFeature) {
  ForwardRow without = RowOf(0, 0, 1);
  without.feature.kept = nullptr;
  EXPECT_EQ(Forward({without}), std::vector<float>(kLayerHeadsVocabulary, 0.0F));
}

TEST_P(LayerHeadsTest, GiveAPassUp) {
  const Interrupt raised{.raised = [](void* /*context*/) { return true; }};
  ForwardBatch batch;
  batch.rows = {RowOf(0, 0, 0)};
  batch.block_tables = {&blocks_[0]};
  EXPECT_EQ(model_->Forward(batch, kv_, raised).values, nullptr);
  batch.rows = {RowOf(0, 0)};
  EXPECT_NE(model_->Forward(batch, kv_).values, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, LayerHeadsTest, testing::ValuesIn(BackendCases()),
                         [](const auto& test) { return TestName(test.param.name); });

}  // namespace
}  // namespace foretoken
