#include "base/numbers/integers.h"
#include "core/model/decoder/decoder_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "core/backend/testing/reference_backend.h"
#include "core/model/memory_needs.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kDecoderVocabulary = 330;
constexpr int kDecoderHidden = 144;

ModelConfig SmallDecoder() {
  return LlamaConfig({.hidden = kDecoderHidden,
                      .intermediate = 272,
                      .layers = 2,
                      .heads = 6,
                      .kv_heads = 2,
                      .head_dim = 32,
                      .vocabulary = kDecoderVocabulary,
                      .max_positions = 512,
                      .tied_embeddings = true});
}

std::vector<float> CopyRows(const float* logits, std::size_t rows) {
  return {logits, logits + rows * kDecoderVocabulary};
}

class DecoderTest : public testing::TestWithParam<std::tuple<BackendCase, Precision>> {
 protected:
  std::unique_ptr<Backend> backend_ = std::get<0>(GetParam()).make(std::get<1>(GetParam()));
  std::unique_ptr<Model> model_ = SyntheticModel(SmallDecoder(), 1, backend_.get());

  // Logits and states of every row, fed in passes of at most `chunk` rows.
  std::vector<float> RunChunked(std::span<const Token> tokens, std::size_t chunk) {
    SequenceRunner runner(model_.get(), Int(tokens.size()));
    std::vector<float> all;
    std::vector<float> states;
    for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - begin);
      const float* logits = runner.Append(tokens.subspan(begin, count));
      all.insert(all.end(), logits, logits + count * kDecoderVocabulary);
      states.insert(states.end(), model_->states(), model_->states() + count * kDecoderHidden);
    }
    all.insert(all.end(), states.begin(), states.end());
    return all;
  }
};

TEST_P(DecoderTest, LogitsAreFiniteAndSpread) {
  const std::vector<Token> tokens = RandomTokens(20, kDecoderVocabulary);
  std::vector<float> logits = RunChunked(tokens, 20);
  logits.resize(20 * kDecoderVocabulary);
  double squares = 0;
  for (const float logit : logits) squares += double{logit} * double{logit};
  const double deviation = std::sqrt(squares / static_cast<double>(logits.size()));
  EXPECT_GT(deviation, 3.0);
  EXPECT_LT(deviation, 5.0);
}

// Two layers that see a window and anchors: which tokens reach a row's logits.
TEST_P(DecoderTest, AWindowAndItsAnchorsAreAllThatReachesARow) {
  constexpr int kWindow = 5;
  ModelConfig config = SmallDecoder();
  for (LayerSpec& layer : config.layers) {
    layer.attention.window = kWindow;
    layer.attention.anchors = 3;
  }
  model_ = SyntheticModel(config, 1, backend_.get());
  const std::vector<Token> tokens = RandomTokens(60, kDecoderVocabulary);
  const auto last = [&](std::size_t changed) {
    std::vector<Token> other = tokens;
    if (changed < other.size()) other[changed] = (other[changed] + 1) % kDecoderVocabulary;
    SequenceRunner runner(model_.get(), 60);
    return CopyRows(runner.Append(other) + 59 * kDecoderVocabulary, 1);
  };
  const std::vector<float> logits = last(60);
  for (std::size_t position = 0; position < 60; ++position) {
    const bool reaches = position < 3 || position + 2 * (kWindow - 1) >= 59;
    EXPECT_EQ(last(position) != logits, reaches) << position;
  }
}

// Operations agree to a rounding (the backends' conformance test); so must the model they make up.
TEST_P(DecoderTest, AgreesWithTheReference) {
  const std::vector<Token> tokens = RandomTokens(40, kDecoderVocabulary);
  const std::vector<float> logits = RunChunked(tokens, 40);
  const auto reference = MakeReferenceBackend(backend_->precision());
  model_ = SyntheticModel(SmallDecoder(), 1, reference.get());
  const std::vector<float> expected = RunChunked(tokens, 40);
  const float tolerance = backend_->precision() == Precision::kBF16 ? 0.1F : 1e-4F;
  EXPECT_THAT(logits, testing::Pointwise(testing::FloatNear(tolerance), expected));
  model_.reset();
}

// Weights are packed once for any number of models, each on a backend of its own: a model refers to
// them.
TEST_P(DecoderTest, ModelsShareTheirWeights) {
  const auto other_backend = std::get<0>(GetParam()).make(std::get<1>(GetParam()));
  auto weights = SyntheticWeights(SmallDecoder(), 1, backend_.get());
  const std::weak_ptr<const ModelWeights> watched = weights;
  model_ = weights->MakeModel(backend_.get());
  std::unique_ptr<Model> other = weights->MakeModel(other_backend.get());
  EXPECT_EQ(watched.use_count(), 3);
  weights.reset();
  const std::vector<Token> tokens = RandomTokens(20, kDecoderVocabulary);
  const std::vector<float> first = RunChunked(tokens, 20);
  model_ = std::move(other);  // The weights stay as long as any model does.
  EXPECT_EQ(watched.use_count(), 1);
  EXPECT_EQ(RunChunked(tokens, 20), first);
  model_.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_P(DecoderTest, SameSeedSameWeights) {
  const std::vector<Token> tokens = RandomTokens(3, kDecoderVocabulary);
  const std::vector<float> first = RunChunked(tokens, 3);
  model_ = SyntheticModel(SmallDecoder(), 1, backend_.get());
  EXPECT_EQ(RunChunked(tokens, 3), first);
  model_ = SyntheticModel(SmallDecoder(), 2, backend_.get());
  EXPECT_NE(RunChunked(tokens, 3), first);
}

// The promise rests on this: a row alone has the bits that it has in a pass of any size, here up
// to more rows than one part holds.
TEST_P(DecoderTest, ChunksDoNotChangeBits) {
  const std::vector<Token> tokens = RandomTokens(300, kDecoderVocabulary);
  const std::vector<float> alone = RunChunked(tokens, 1);
  for (const std::size_t chunk : {2, 7, 16, 33, 64, 300}) {
    EXPECT_TRUE(RunChunked(tokens, chunk) == alone) << "passes of " << chunk << " rows";
  }
}

// Two sequences with scattered blocks, whose last rows are found through tail slots.
TEST_P(DecoderTest, PlacementAndNeighboursDoNotChangeBits) {
  const std::vector<Token> tokens = RandomTokens(80, kDecoderVocabulary);
  const std::vector<float> expected = RunChunked(tokens, 80);
  KvStore kv = backend_->AllocateKv(model_->KvShapeFor(12));
  const std::int32_t table_a[] = {7, 2, 5};
  const std::int32_t table_b[] = {1, 9, 0};
  constexpr std::int32_t kTrunk = 70;
  ForwardBatch batch;
  batch.block_tables = {table_a, table_b};
  batch.tail_slots = {3 * 32 + 5, 11 * 32,     10 * 32 + 9, 3 * 32 + 4, 4 * 32,
                      4 * 32 + 1, 8 * 32 + 30, 8 * 32,      6 * 32 + 2, 11 * 32 + 31};
  for (int sequence = 0; sequence < 2; ++sequence) {
    // The second sequence stays on its trunk and is shorter.
    const std::int32_t length = sequence == 0 ? 80 : 61;
    for (std::int32_t p = 0; p < length; ++p) {
      RowPlace place{p, batch.block_tables[sequence][p / 32] * 32 + p % 32, sequence, p + 1, 0};
      if (p >= kTrunk) {
        place.slot = batch.tail_slots[p - kTrunk];
        place.trunk_length = kTrunk;
      }
      const bool wanted = sequence == 0 ? p % 3 != 0 : p == length - 1;
      batch.rows.push_back({tokens[p], place, wanted, p % 5 == 0});
    }
  }
  const float* logits = model_->Forward(batch, kv).values;
  const float* states = model_->states();
  for (const ForwardRow& row : batch.rows) {
    if (!row.wants_state) continue;
    EXPECT_TRUE(
        std::equal(states, states + kDecoderHidden,
                   expected.data() + 80 * kDecoderVocabulary + row.place.position * kDecoderHidden))
        << "sequence " << row.place.sequence << " position " << row.place.position;
    states += kDecoderHidden;
  }
  for (const ForwardRow& row : batch.rows) {
    if (!row.wants_logits) continue;
    EXPECT_TRUE(std::equal(logits, logits + kDecoderVocabulary,
                           expected.data() + std::int64_t{row.place.position} * kDecoderVocabulary))
        << "sequence " << row.place.sequence << " position " << row.place.position;
    logits += kDecoderVocabulary;
  }
}

// Branches of a tree in one pass see their own path only.
TEST_P(DecoderTest, BranchesDoNotSeeEachOther) {
  const std::vector<Token> trunk = RandomTokens(40, kDecoderVocabulary);
  const std::vector<Token> branches[] = {{11, 12, 13}, {21, 22, 23}};
  const std::int32_t table[] = {0, 1};
  KvStore kv = backend_->AllocateKv(model_->KvShapeFor(3));
  ForwardBatch batch;
  batch.block_tables = {table};
  batch.tail_slots = {64, 66, 68, 65, 67, 69};
  for (std::int32_t p = 0; p < 40; ++p)
    batch.rows.push_back({trunk[p], {p, p, 0, p + 1, 0}, false});
  for (std::int32_t depth = 0; depth < 3; ++depth) {
    for (std::int32_t branch = 0; branch < 2; ++branch) {
      const RowPlace place{40 + depth, batch.tail_slots[branch * 3 + depth], 0, 40, branch * 3};
      batch.rows.push_back({branches[branch][depth], place, true});
    }
  }
  const std::vector<float> tree = CopyRows(model_->Forward(batch, kv).values, 6);
  for (int branch = 0; branch < 2; ++branch) {
    std::vector<Token> path = trunk;
    path.insert(path.end(), branches[branch].begin(), branches[branch].end());
    const std::vector<float> expected = RunChunked(path, path.size());
    for (int depth = 0; depth < 3; ++depth) {
      EXPECT_TRUE(std::equal(tree.data() + (depth * 2 + branch) * kDecoderVocabulary,
                             tree.data() + (depth * 2 + branch + 1) * kDecoderVocabulary,
                             expected.data() + (40 + depth) * kDecoderVocabulary))
          << "branch " << branch << " depth " << depth;
    }
  }
}

TEST_P(DecoderTest, InterruptGivesUpBetweenLayersAndBeforeTheLmHead) {
  KvStore kv = backend_->AllocateKv(model_->KvShapeFor(1));
  const std::int32_t table[] = {0};
  ForwardBatch batch;
  batch.block_tables = {table};
  batch.rows = {{5, {0, 0, 0, 1, 0}, true}};
  const int polls = SmallDecoder().layer_count() + 1;
  int left = 0;
  const Interrupt at_last{[](void* context) { return --*static_cast<int*>(context) == 0; }, &left};
  for (const int poll : {2, polls}) {
    left = poll;
    EXPECT_EQ(model_->Forward(batch, kv, at_last).values, nullptr) << poll;
    EXPECT_EQ(left, 0);
  }
  left = polls + 1;
  EXPECT_NE(model_->Forward(batch, kv, at_last).values, nullptr);
  EXPECT_EQ(left, 1);
  // Without wanted logits there is no lm head, and no values are still not null.
  batch.rows[0].wants_logits = false;
  left = polls;
  EXPECT_NE(model_->Forward(batch, kv, at_last).values, nullptr);
  EXPECT_EQ(left, 1);
}

TEST_P(DecoderTest, ReportsMemory) {
  const ModelConfig config = SmallDecoder();
  const std::int64_t table = std::int64_t{kDecoderVocabulary} * kDecoderHidden;
  const TensorMap tensors = {
      {"embedding.weight", {WeightFormat::kBF16, {kDecoderVocabulary, kDecoderHidden}, nullptr}},
      {"layers.0.all", {WeightFormat::kF16, {config.parameters() - table, 1}, nullptr}}};
  const MemoryNeeds needs = EstimateMemory(config, tensors, *backend_);
  const std::size_t stored = backend_->precision() == Precision::kBF16 ? 2 : 4;
  EXPECT_EQ(needs.weight_bytes, config.parameters() * stored);
  EXPECT_EQ(needs.kv_bytes_per_sequence, needs.kv_bytes_per_token * 512);
  EXPECT_EQ(needs.kv_bytes_per_token * kBlockSize, backend_->KvBytes(model_->KvShapeFor(1)));
  EXPECT_GE(model_->weight_bytes(), needs.weight_bytes);
  // A layer that sees 64 of the 512 positions keeps a block more than these.
  ModelConfig windowed = config;
  windowed.layers[0].attention.window = 64;
  EXPECT_EQ(EstimateMemory(windowed, tensors, *backend_).kv_bytes_per_sequence,
            needs.kv_bytes_per_token / 2 * (512 + 64 + kBlockSize));
  windowed.layers[0].attention.anchors = 4;
  EXPECT_EQ(EstimateMemory(windowed, tensors, *backend_).kv_bytes_per_sequence,
            needs.kv_bytes_per_token / 2 * (512 + 64 + 2 * kBlockSize));
}

INSTANTIATE_TEST_SUITE_P(Backends, DecoderTest,
                         testing::Combine(testing::ValuesIn(BackendCases()),
                                          testing::Values(Precision::kF32, Precision::kBF16)),
                         [](const auto& test) {
                           const bool bf16 = std::get<1>(test.param) == Precision::kBF16;
                           return TestName(std::get<0>(test.param).name) +
                                  (bf16 ? "_BF16" : "_F32");
                         });

}  // namespace
}  // namespace foretoken
