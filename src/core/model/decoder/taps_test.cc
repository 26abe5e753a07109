#include "core/backend/taps.h"
#include "base/numbers/integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "core/model/config/named_shapes.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kTappedVocabulary = 330;
constexpr int kTappedHidden = 96;
constexpr int kTappedLayers = 3;

ModelConfig SmallTapped() {
  return LlamaConfig({.hidden = kTappedHidden,
                      .intermediate = 160,
                      .layers = kTappedLayers,
                      .heads = 6,
                      .kv_heads = 2,
                      .head_dim = 16,
                      .vocabulary = kTappedVocabulary,
                      .max_positions = 512,
                      .tied_embeddings = true});
}

class TapsTest : public testing::TestWithParam<BackendCase> {
 protected:
  // A store whose passes keep the states at `points`, and one sequence in it.
  struct Run {
    KvStore kv;
    std::vector<std::int32_t> blocks;
    std::vector<float> logits;
    std::vector<float> states;
  };

  Run RunOver(Model& model, std::span<const Token> tokens, std::size_t chunk,
              std::vector<int> points) {
    KvShape shape = model.KvShapeFor(2);
    shape.taps = {.points = std::move(points), .hidden = model.config().hidden};
    Run run{.kv = backend_->AllocateKv(shape), .blocks = {1, 0}, .logits = {}, .states = {}};
    ForwardBatch batch;
    for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const std::size_t end = std::min(tokens.size(), begin + chunk);
      batch.Clear();
      batch.block_tables.push_back(run.blocks.data());
      for (auto p = static_cast<std::int32_t>(begin); p < static_cast<std::int32_t>(end); ++p) {
        const RowPlace place{p, SlotOf(run, p), 0, p + 1, 0};
        batch.rows.push_back({.token = tokens[p], .place = place, .wants_state = true});
      }
      const float* logits = model.Forward(batch, run.kv).values;
      const std::size_t rows = end - begin;
      run.logits.insert(run.logits.end(), logits, logits + rows * kTappedVocabulary);
      const std::size_t hidden = model.config().hidden;
      run.states.insert(run.states.end(), model.states(), model.states() + rows * hidden);
    }
    return run;
  }

  static std::int32_t SlotOf(const Run& run, std::int32_t position) {
    return run.blocks[position / kBlockSize] * kBlockSize + position % kBlockSize;
  }

  // What is kept of all positions, in their order.
  static std::vector<BFloat16> Kept(const Run& run, int positions) {
    std::vector<BFloat16> all;
    for (std::int32_t p = 0; p < positions; ++p) {
      const BFloat16* row = run.kv.taps.Row(SlotOf(run, p));
      all.insert(all.end(), row, row + run.kv.taps.shape.width());
    }
    return all;
  }

  std::unique_ptr<Backend> backend_ = GetParam().make(Precision::kF32);
};

TEST_P(TapsTest, TheFinalStateIsWhatTheHeadReads) {
  const auto model = SyntheticModel(SmallTapped(), 1, backend_.get());
  const std::vector<Token> tokens = RandomTokens(40, kTappedVocabulary);
  const Run run = RunOver(*model, tokens, 40, {TapShape::kFinalState});
  std::vector<BFloat16> expected(run.states.size());
  std::ranges::transform(run.states, expected.begin(), FloatToBFloat16);
  EXPECT_EQ(Kept(run, 40), expected);
}

// Streams between the layers are compared with those of another implementation in the drafters'
// goldens; here the first and the last one.
TEST_P(TapsTest, AStreamBeginsAsTheEmbeddingAndEndsBeforeTheFinalNorm) {
  const std::vector<Token> tokens = RandomTokens(40, kTappedVocabulary);
  const auto whole = SyntheticModel(SmallTapped(), 1, backend_.get());
  const Run run = RunOver(*whole, tokens, 40, {kTappedLayers, 0});
  const std::vector<BFloat16> kept = Kept(run, 40);
  ModelConfig embedding = SmallTapped();
  embedding.layers.clear();
  embedding.feature.output_norm = false;
  const auto no_layers = SyntheticModel(embedding, 1, backend_.get());
  const Run begun = RunOver(*no_layers, tokens, 40, {});
  for (std::size_t row = 0; row < 40; ++row) {
    const BFloat16* const ended = &kept[row * 2 * kTappedHidden];
    double squares = 0;
    for (int i = 0; i < kTappedHidden; ++i) {
      squares += double{BFloat16ToFloat(ended[i])} * double{BFloat16ToFloat(ended[i])};
    }
    const auto scale = static_cast<float>(1 / std::sqrt(squares / kTappedHidden));
    for (int i = 0; i < kTappedHidden; ++i) {
      const std::size_t at = row * kTappedHidden + Size(i);
      ASSERT_NEAR(BFloat16ToFloat(ended[i]) * scale, run.states[at], 0.02) << "row " << row;
      ASSERT_EQ(ended[kTappedHidden + i], FloatToBFloat16(begun.states[at])) << "row " << row;
    }
  }
}

TEST_P(TapsTest, ArePartOfNoBitOfTheLogitsAndDoNotDependOnPasses) {
  const auto model = SyntheticModel(SmallTapped(), 1, backend_.get());
  const std::vector<Token> tokens = RandomTokens(40, kTappedVocabulary);
  const Run without = RunOver(*model, tokens, 40, {});
  const Run whole = RunOver(*model, tokens, 40, {1, TapShape::kFinalState});
  const Run chunked = RunOver(*model, tokens, 7, {1, TapShape::kFinalState});
  EXPECT_EQ(whole.logits, without.logits);
  EXPECT_EQ(Kept(chunked, 40), Kept(whole, 40));
}

TEST_P(TapsTest, MoveWithKeysAndValues) {
  const auto model = SyntheticModel(SmallTapped(), 1, backend_.get());
  Run run = RunOver(*model, RandomTokens(40, kTappedVocabulary), 40, {1, 2});
  const std::vector<BFloat16> before = Kept(run, 40);
  const std::size_t width = run.kv.taps.shape.width();
  backend_->CopyKv(run.kv, std::array{KvMove{.from = SlotOf(run, 39), .to = SlotOf(run, 34)}});
  const std::vector<BFloat16> after = Kept(run, 40);
  const auto row = [width](const std::vector<BFloat16>& rows, std::size_t number) {
    return std::vector(rows.begin() + static_cast<std::ptrdiff_t>(number * width),
                       rows.begin() + static_cast<std::ptrdiff_t>((number + 1) * width));
  };
  EXPECT_EQ(row(after, 34), row(before, 39));
  EXPECT_EQ(row(after, 33), row(before, 33));
  EXPECT_EQ(row(after, 35), row(before, 35));
}

TEST_P(TapsTest, TakeTheMemoryThatIsCountedForThem) {
  const auto model = SyntheticModel(SmallTapped(), 1, backend_.get());
  KvShape shape = model->KvShapeFor(2);
  const std::size_t without = backend_->KvBytes(shape);
  shape.taps = {.points = {1, 2}, .hidden = kTappedHidden};
  EXPECT_EQ(backend_->KvBytes(shape) - without,
            std::size_t{2 * kBlockSize} * 2 * kTappedHidden * 2);
}

INSTANTIATE_TEST_SUITE_P(All, TapsTest, testing::ValuesIn(BackendCases()),
                         [](const auto& test) { return TestName(test.param.name); });

}  // namespace
}  // namespace foretoken
