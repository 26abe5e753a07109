#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/heads/heads_models.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kSequentialVocabulary = 330;
constexpr int kSequentialHidden = 64;
constexpr int kSequentialHeadCount = 3;

ModelConfig SequentialHeadsConfig(int layers) {
  ModelConfig config = LlamaConfig({.hidden = kSequentialHidden,
                                    .intermediate = 96,
                                    .layers = layers,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_dim = 16,
                                    .vocabulary = kSequentialVocabulary,
                                    .max_positions = 64});
  config.feature = {.join = FeatureSpec::Join::kSequentialHeads,
                    .points = {TapShape::kFinalState},
                    .tapped = kSequentialHidden,
                    .leaves_normed = true,
                    .heads = kSequentialHeadCount,
                    .head_blocks = 2,
                    .output_norm = layers > 0};
  return config;
}

// Two sequences of a few positions, with features as a target keeps them.
class SequentialHeadsTest : public testing::TestWithParam<std::tuple<BackendCase, int>> {
 protected:
  void SetUp() override {
    for (const Token token : RandomTokens(2 * kPositions * kSequentialHidden, 2000)) {
      features_.push_back(FloatToBFloat16(static_cast<float>(token - 1000) / 500));
    }
  }
  int layers() const { return std::get<1>(GetParam()); }

  // The row of a position of a sequence, which reads what was kept.
  ForwardRow KeptRow(int sequence, int position, bool wanted) const {
    const int number = sequence * kPositions + position;
    return {.token = 5 * number + 1,
            .place = {position, sequence * kBlockSize + position, sequence, position + 1, 0},
            .wants_logits = wanted,
            .wants_state = wanted,
            .feature = {.kept = features_.data() + std::ptrdiff_t{number} * kSequentialHidden}};
  }
  // A row behind the last position of a sequence and the tokens of a path.
  ForwardRow NodeRow(const std::vector<float>& left, std::vector<Token> path) {
    const Token own = path.back();
    path.pop_back();
    return {.token = own, .feature = {.left = left.data()}, .path = batch_.AddPath(path)};
  }
  std::vector<float> Forward(const std::vector<ForwardRow>& rows) {
    batch_.rows = rows;
    batch_.block_tables = {&blocks_[0], &blocks_[0]};
    const float* logits = model_->Forward(batch_, kv_).values;
    const auto wanted = std::ranges::count_if(rows, &ForwardRow::wants_logits);
    return {logits, logits + wanted * kSequentialVocabulary};
  }
  std::vector<float> StateOf(int row) const {
    const float* state = model_->states() + std::ptrdiff_t{row} * kSequentialHidden;
    return {state, state + kSequentialHidden};
  }

  static constexpr int kPositions = 4;
  std::unique_ptr<Backend> backend_ = std::get<0>(GetParam()).make(Precision::kF32);
  std::unique_ptr<Model> model_ =
      SyntheticModel(SequentialHeadsConfig(layers()), 3, backend_.get());
  KvStore kv_ = backend_->AllocateKv(model_->KvShapeFor(2));
  std::int32_t blocks_[2] = {0, 1};
  std::vector<BFloat16> features_;
  ForwardBatch batch_;
};

std::vector<float> operator+(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A row's logits are its own, whatever else is in the pass and however its sequence was read.
TEST_P(SequentialHeadsTest, RowsOfManySequencesAreWhatEachIsAlone) {
  std::vector<std::vector<float>> roots(2);
  std::vector<std::vector<float>> left(2);
  for (const int sequence : {0, 1}) {
    for (int position = 0; position < kPositions; ++position) {
      const bool last = position + 1 == kPositions;
      roots[sequence] = Forward({KeptRow(sequence, position, last)});
    }
    left[sequence] = StateOf(0);
  }
  std::vector<ForwardRow> all;
  for (const int sequence : {0, 1}) {
    for (int position = 0; position < kPositions; ++position) {
      all.push_back(KeptRow(sequence, position, position + 1 == kPositions));
    }
  }
  EXPECT_EQ(Forward(all), roots[0] + roots[1]);
  EXPECT_EQ(StateOf(0), left[0]);
  EXPECT_EQ(StateOf(1), left[1]);

  const std::vector<std::vector<Token>> paths = {{4, 9}, {4, 9, 11}, {4, 7, 11}};
  std::vector<float> alone = roots[0];
  std::vector<ForwardRow> rows = {KeptRow(0, kPositions - 1, true)};
  for (const int sequence : {0, 1}) {
    for (const auto& path : paths) alone = alone + Forward({NodeRow(left[sequence], path)});
  }
  batch_.Clear();
  for (const int sequence : {0, 1}) {
    for (const auto& path : paths) rows.push_back(NodeRow(left[sequence], path));
  }
  EXPECT_EQ(Forward(rows), alone);
}

TEST_P(SequentialHeadsTest, ReadTheStateAndTheWholePath) {
  Forward({KeptRow(0, 0, true)});
  const std::vector<float> left = StateOf(0);
  std::vector<float> other = left;
  other[7] += 1;
  ForwardRow row = NodeRow(left, {4, 9, 11});
  row.wants_state = true;
  const auto said = Forward({row});
  EXPECT_EQ(StateOf(0), left);  // As it was read.
  EXPECT_NE(said, Forward({NodeRow(left, {5, 9, 11})}));
  EXPECT_NE(said, Forward({NodeRow(left, {4, 8, 11})}));
  EXPECT_NE(said, Forward({NodeRow(left, {4, 9, 10})}));
  EXPECT_NE(said, Forward({NodeRow(other, {4, 9, 11})}));
  EXPECT_EQ(said, Forward({NodeRow(left, {4, 9, 11})}));
}

// With layers the state is what they make of all positions so far; without, it is that of the last.
TEST_P(SequentialHeadsTest, LayersSeeThePositionsBefore) {
  Forward({KeptRow(0, 0, false), KeptRow(0, 1, true)});
  const std::vector<float> left = StateOf(0);
  std::ranges::fill(std::span(features_).first(kSequentialHidden), FloatToBFloat16(0.25F));
  Forward({KeptRow(0, 0, false), KeptRow(0, 1, true)});
  EXPECT_EQ(StateOf(0) != left, layers() > 0);
}

TEST_P(SequentialHeadsTest, NotesTheLargestOfEachGroup) {
  batch_.rows = {KeptRow(0, 0, true)};
  batch_.block_tables = {&blocks_[0]};
  const Logits logits = model_->Forward(batch_, kv_);
  for (std::int64_t group = 0; group < Logits::Groups(kSequentialVocabulary); ++group) {
    const float* begin = logits.values + group * kLogitGroup;
    const std::int64_t count =
        std::min<std::int64_t>(kLogitGroup, kSequentialVocabulary - group * kLogitGroup);
    EXPECT_EQ(logits.maxima[group], *std::max_element(begin, begin + count));
  }
}

TEST_P(SequentialHeadsTest, GivesAPassUp) {
  const Interrupt raised{.raised = [](void* /*context*/) { return true; }};
  batch_.rows = {KeptRow(0, 0, true)};
  batch_.block_tables = {&blocks_[0]};
  EXPECT_EQ(model_->Forward(batch_, kv_, raised).values, nullptr);
  batch_.rows = {KeptRow(0, 0, false)};
  EXPECT_NE(model_->Forward(batch_, kv_).values,
            nullptr);  // Nothing is wanted, and nothing failed.
}

INSTANTIATE_TEST_SUITE_P(All, SequentialHeadsTest,
                         testing::Combine(testing::ValuesIn(BackendCases()), testing::Values(0, 1)),
                         [](const auto& test) {
                           return TestName(std::get<0>(test.param).name) +
                                  (std::get<1>(test.param) > 0 ? "WithALayer" : "");
                         });

}  // namespace
}  // namespace foretoken
