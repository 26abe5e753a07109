// What experts need: products of groups of rows, each with a matrix of its own, the choice of
// experts, and the sum of what they make.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/numbers/integers.h"
#include "core/backend/conformance_testing.h"
#include "core/tensor/half.h"
#include "core/tensor/quantize.h"

namespace foretoken {
namespace {

class ExpertsTest : public BackendTest {};

INSTANTIATE_TEST_SUITE_P(All, ExpertsTest, testing::ValuesIn(Subjects()),
                         [](const auto& param) { return param.param.Name(); });

constexpr int kExpertOutputs = 1000;  // No whole number of panels.
constexpr int kExpertInputs = 96;
constexpr int kExpertMatrices = 5;
const std::vector<RowGroup> kGroups = {{3, 0, 1}, {0, 1, 4}, {4, 4, 24}, {1, 24, 25}};

std::vector<std::vector<float>> Matrices() {
  std::vector<std::vector<float>> matrices;
  for (int i = 0; i < kExpertMatrices; ++i) {
    matrices.push_back(
        Random(std::size_t{kExpertOutputs} * kExpertInputs, static_cast<std::uint32_t>(i)));
  }
  return matrices;
}

Matrix StackOf(const std::vector<std::vector<float>>& matrices, Backend* backend) {
  const TensorView first = ViewOf(matrices[0], kExpertOutputs);
  Matrix stack = backend->MakeStack({&first, 1}, kExpertMatrices);
  for (int i = 0; i < kExpertMatrices; ++i) {
    const TensorView view = ViewOf(matrices[i], kExpertOutputs);
    backend->PackInto({&view, 1}, i, &stack);
  }
  return stack;
}

TEST_P(ExpertsTest, GroupsOfRowsMeetTheirMatricesAsAlone) {
  ThreadPool pool({0, 1});
  const auto matrices = Matrices();
  const auto x = Random(25 * kExpertInputs, 10);
  const auto bias = Random(std::size_t{kExpertMatrices} * kExpertOutputs, 11);
  for (ThreadPool* workers : {static_cast<ThreadPool*>(nullptr), &pool}) {
    const auto backend = Make(workers);
    const Matrix stack = StackOf(matrices, backend.get());
    std::vector<float> plain(std::size_t{25} * kExpertOutputs);
    std::vector<float> biased(plain.size());
    backend->MatMulGroups(stack, kGroups, nullptr, x.data(), plain.data());
    backend->MatMulGroups(stack, kGroups, bias.data(), x.data(), biased.data());
    for (const RowGroup& group : kGroups) {
      const TensorView view = ViewOf(matrices[group.matrix], kExpertOutputs);
      const Matrix matrix = backend->Pack({&view, 1});
      for (int row = group.begin; row < group.end; ++row) {
        std::vector<float> alone(kExpertOutputs);
        backend->MatMul(matrix, x.data() + row * kExpertInputs, 1, alone.data());
        ASSERT_TRUE(SameBits(alone.data(), plain.data() + row * kExpertOutputs, kExpertOutputs))
            << row;
        backend->FillRows(bias.data() + group.matrix * kExpertOutputs, 1, kExpertOutputs,
                          alone.data());
        backend->MatMulAdd(matrix, x.data() + row * kExpertInputs, 1, alone.data());
        ASSERT_TRUE(SameBits(alone.data(), biased.data() + row * kExpertOutputs, kExpertOutputs))
            << row;
      }
    }
  }
}

TEST_P(ExpertsTest, BorrowedMatricesHaveTheBitsOfPackedOnes) {
  ThreadPool pool({0, 1});
  const auto x = Random(25 * kExpertInputs, 10);
  const auto bias = Random(std::size_t{kExpertMatrices} * kExpertOutputs, 11);
  const auto matrices = Matrices();
  std::vector<std::vector<BFloat16>> rounded;
  for (const std::vector<float>& numbers : matrices) {
    std::ranges::transform(numbers, std::back_inserter(rounded.emplace_back()), FloatToBFloat16);
  }
  for (ThreadPool* workers : {static_cast<ThreadPool*>(nullptr), &pool}) {
    const auto backend = Make(workers);
    for (const int inputs : {kExpertInputs, 55}) {  // No whole chunk, and an odd number.
      constexpr int kFirst = 19;
      Matrix packed;
      std::vector<TensorView> parts;
      for (std::size_t i = 0; i < kExpertMatrices; ++i) {
        // Two parts, of which the first ends within a panel.
        const std::vector<TensorView> own = {
            {WeightFormat::kF32,
             {kFirst, inputs},
             reinterpret_cast<const std::byte*>(matrices[i].data())},
            {WeightFormat::kBF16,
             {kExpertOutputs - kFirst, inputs},
             reinterpret_cast<const std::byte*>(rounded[i].data())}};
        if (i == 0) packed = backend->MakeStack(own, kExpertMatrices);
        backend->PackInto(own, Int(i), &packed);
        parts.insert(parts.end(), own.begin(), own.end());
      }
      const Matrix borrowed = backend->Borrow(parts, kExpertMatrices);
      for (const float* added : {static_cast<const float*>(nullptr), bias.data()}) {
        std::vector<float> expected(std::size_t{25} * kExpertOutputs);
        std::vector<float> y(expected.size(), -1.0F);
        backend->MatMulGroups(packed, kGroups, added, x.data(), expected.data());
        backend->MatMulGroups(borrowed, kGroups, added, x.data(), y.data());
        EXPECT_TRUE(SameBits(y.data(), expected.data(), y.size())) << inputs;
      }
    }
  }
}

TEST_P(ExpertsTest, GroupsAgreeWithReference) {
  const auto matrices = Matrices();
  const auto x = Random(25 * kExpertInputs, 10);
  const auto bias = Random(std::size_t{kExpertMatrices} * kExpertOutputs, 11);
  std::vector<float> results[2];
  const std::unique_ptr<Backend> backends[] = {Make(), Reference()};
  for (int i = 0; i < 2; ++i) {
    results[i].resize(std::size_t{25} * kExpertOutputs);
    const Matrix stack = StackOf(matrices, backends[i].get());
    backends[i]->MatMulGroups(stack, kGroups, bias.data(), x.data(), results[i].data());
  }
  EXPECT_THAT(results[0], testing::Pointwise(NearBy(Tolerance(1e-4F)), results[1]));
}

// What docs/develop/arithmetic.md says, in double: the experts of a row in order, and what they
// weigh.
std::vector<std::pair<int, double>> Expected(const Routing& routing, std::span<const float> scores,
                                             const std::vector<float>& choice_bias) {
  using enum Routing::Weights;
  const bool sigmoids = routing.weights == kSigmoids || routing.weights == kSigmoidsOfSum;
  std::vector<double> weights;
  for (const float score : scores) {
    weights.push_back(sigmoids ? 1 / (1 + std::exp(-double{score})) : std::exp(double{score}));
  }
  std::vector<double> by(weights.size());
  for (std::size_t i = 0; i < by.size(); ++i) {
    by[i] = (sigmoids ? weights[i] : scores[i]) + (choice_bias.empty() ? 0 : choice_bias[i]);
  }
  const auto descending = [](const std::vector<double>& values) {
    std::vector<int> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int a, int b) { return values[a] > values[b]; });
    return order;
  };
  const std::vector<int> order = descending(by);
  const int width = routing.experts / routing.groups;
  std::vector<double> groups(routing.groups, 0);
  std::vector<int> seen(groups.size());
  for (const int expert : order) {
    const int most = routing.group_score == Routing::GroupScore::kLargest ? 1 : 2;
    if (seen[expert / width]++ < most) groups[expert / width] += by[expert];
  }
  std::vector<int> best = descending(groups);
  best.resize(routing.chosen_groups);
  std::vector<std::pair<int, double>> chosen;
  double sum = 0;
  for (const int expert : order) {
    if (std::ranges::find(best, expert / width) == best.end()) continue;
    if (std::ssize(chosen) == routing.chosen) break;
    chosen.emplace_back(expert, weights[expert]);
    sum += weights[expert];
  }
  if (routing.weights == kSoftmaxOfAll) sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (routing.weights == kSigmoids) sum = 1;
  for (auto& [expert, weight] : chosen) weight = weight / sum * routing.factor;
  return chosen;
}

std::vector<Routing> Routings() {
  std::vector<Routing> all;
  using enum Routing::Weights;
  for (const auto weights : {kSoftmaxOfAll, kSoftmaxOfChosen, kSigmoids, kSigmoidsOfSum}) {
    for (const int experts : {1, 4, 33, 128}) {
      all.push_back({experts, std::min(experts, 3), weights});
    }
    for (const auto score : {Routing::GroupScore::kLargest, Routing::GroupScore::kTwoLargest}) {
      all.push_back({40, 6, weights, 2.5F, 8, 3, score});
    }
    all.push_back({6, 2, weights, 0.5F, 6, 4, Routing::GroupScore::kTwoLargest});
  }
  return all;
}

// Quantised matrices of a stack are multiplied as they are alone, whatever their format.
TEST_P(ExpertsTest, GroupsMeetMatricesOfEveryFormat) {
  constexpr std::int64_t kWide = 256;
  constexpr std::int64_t kRows = 40;  // Rows of a matrix.
  const auto backend = Make();
  const auto x = Random(25 * kWide, 10);
  for (std::size_t i = 0; i < kWeightFormats; ++i) {
    const auto format = static_cast<WeightFormat>(i);
    if (!IsQuantized(format) || !CanStore(format)) continue;
    std::vector<std::vector<std::byte>> blocks;
    std::vector<TensorView> views;
    for (int matrix = 0; matrix < kExpertMatrices; ++matrix) {
      const auto values = Random(kRows * kWide, static_cast<std::uint32_t>(matrix));
      auto& bytes = blocks.emplace_back(FormatBytes(format, kRows * kWide));
      StoreElements(format, values.data(), kRows * kWide, bytes.data());
      views.push_back({format, {kRows, kWide}, bytes.data()});
    }
    Matrix stack = backend->MakeStack({&views[0], 1}, kExpertMatrices);
    for (int matrix = 0; matrix < kExpertMatrices; ++matrix) {
      backend->PackInto({&views[matrix], 1}, matrix, &stack);
    }
    std::vector<float> y(25 * kRows);
    backend->MatMulGroups(stack, kGroups, nullptr, x.data(), y.data());
    for (const RowGroup& group : kGroups) {
      const Matrix alone = backend->Pack({&views[group.matrix], 1});
      for (int row = group.begin; row < group.end; ++row) {
        std::vector<float> expected(kRows);
        backend->MatMul(alone, x.data() + row * kWide, 1, expected.data());
        ASSERT_TRUE(SameBits(expected.data(), y.data() + row * kRows, kRows))
            << FormatName(format) << ", row " << row;
      }
    }
  }
}

TEST_P(ExpertsTest, RowsChooseTheLargestAndWeighThem) {
  const auto backend = Make();
  const auto reference = Reference();
  constexpr int kRows = 9;
  for (const Routing& routing : Routings()) {
    for (const bool biased : {false, true}) {
      const auto scores = Random(Size(kRows * routing.experts), 7, 3.0F);
      const auto bias = Random(biased ? Size(routing.experts) : 0, 8, 0.3F);
      const float* const choice_bias = biased ? bias.data() : nullptr;
      const auto count = Size(kRows * routing.chosen);
      std::vector<std::int32_t> chosen(count);
      std::vector<std::int32_t> expected(count);
      std::vector<float> weights(count);
      std::vector<float> expected_weights(count);
      backend->Route(routing, scores.data(), choice_bias, kRows, chosen.data(), weights.data());
      reference->Route(routing, scores.data(), choice_bias, kRows, expected.data(),
                       expected_weights.data());
      EXPECT_EQ(chosen, expected);
      EXPECT_THAT(weights, testing::Pointwise(NearBy(Tolerance(1e-6F)), expected_weights));
      for (int row = 0; row < kRows; ++row) {
        const std::span of_row(scores.data() + row * routing.experts, routing.experts);
        std::size_t at = Size(row * routing.chosen);
        for (const auto& [expert, weight] : Expected(routing, of_row, bias)) {
          EXPECT_EQ(chosen[at], expert);
          EXPECT_NEAR(weights[at++], weight, 3e-6);
        }
      }
      std::vector<float> alone(routing.chosen);
      backend->Route(routing, scores.data() + 4 * routing.experts, choice_bias, 1, expected.data(),
                     alone.data());
      EXPECT_TRUE(SameBits(alone.data(), weights.data() + 4 * routing.chosen, alone.size()));
    }
  }
}

TEST_P(ExpertsTest, EqualScoresAreTakenInOrderAndNoNumberLast) {
  const auto backend = Make();
  const float none = std::numeric_limits<float>::quiet_NaN();
  const float scores[] = {none, 2, 5, 2, none, 5, 1, 2};
  std::int32_t chosen[8];
  float weights[8];
  backend->Route({8, 4}, scores, nullptr, 1, chosen, weights);
  EXPECT_THAT(std::span(chosen, 4), testing::ElementsAre(2, 5, 1, 3));
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[2], weights[3]);
  backend->Route({8, 8}, scores, nullptr, 1, chosen, weights);
  EXPECT_THAT(chosen, testing::ElementsAre(2, 5, 1, 3, 7, 6, 0, 4));
}

TEST_P(ExpertsTest, RowsAreAddedAsTheirGatesSay) {
  ThreadPool pool({0, 1});
  const auto backend = Make(&pool);
  const auto reference = Reference();
  constexpr int kRows = 300;
  for (const int width : {1, 40, 512, 1000}) {
    const auto x = Random(Size(kRows * width), 1);
    const auto before = Random(x.size(), 2);
    auto gates = Random(kRows, 3, 3.0F);
    gates[0] = -1000.0F;
    gates[1] = 1000.0F;
    std::vector<float> y = before;
    std::vector<float> expected = before;
    backend->AddGatedRows(gates.data(), x.data(), kRows, width, y.data());
    reference->AddGatedRows(gates.data(), x.data(), kRows, width, expected.data());
    EXPECT_THAT(y, testing::Pointwise(NearBy(Tolerance(2e-6F)), expected));
    for (int i = 0; i < width; ++i) {
      EXPECT_EQ(y[i], before[i]);
      const std::size_t at = width + i;
      EXPECT_EQ(y[at], before[at] + x[at]);
    }
    std::vector<float> alone(before.begin() + 5 * width, before.begin() + 6 * width);
    backend->AddGatedRows(gates.data() + 5, x.data() + 5 * width, 1, width, alone.data());
    EXPECT_TRUE(SameBits(alone.data(), y.data() + 5 * width, alone.size()));
  }
}

TEST_P(ExpertsTest, RowsAreSummedWithTheirWeights) {
  ThreadPool pool({0, 1});
  const auto backend = Make(&pool);
  const auto reference = Reference();
  constexpr int kRows = 300;
  constexpr int kCount = 3;
  for (const int width : {1, 40, 512}) {
    const auto x = Random(Size(kRows * kCount * width), 1);
    const auto weights = Random(kRows * kCount, 2);
    std::vector<std::int32_t> places(kRows * kCount);
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] = static_cast<std::int32_t>(i * 7 % places.size());
    }
    std::vector<float> out(Size(kRows * width));
    std::vector<float> expected(out.size());
    backend->WeightedSums(x.data(), places.data(), weights.data(), kRows, kCount, width,
                          out.data());
    reference->WeightedSums(x.data(), places.data(), weights.data(), kRows, kCount, width,
                            expected.data());
    EXPECT_THAT(out, testing::Pointwise(NearBy(Tolerance(2e-6F)), expected));
    std::vector<float> alone(width);
    backend->WeightedSums(x.data(), places.data() + 5 * kCount, weights.data() + 5 * kCount, 1,
                          kCount, width, alone.data());
    EXPECT_TRUE(SameBits(alone.data(), out.data() + 5 * width, alone.size()));
  }
}

TEST_P(ExpertsTest, ClampedGates) {
  const auto backend = Make();
  const float none = std::numeric_limits<float>::quiet_NaN();
  const float gate_up[] = {-1000.0F, 1000.0F, 7.0F, 0.0F, 1.0F,  none, 1.0F,
                           3.0F,     9.0F,    7.0F, 5.0F, -9.0F, 1.0F, none};
  float out[7];
  backend->GatedMul(Activation::kClampedSwish, gate_up, 1, 7, out);
  EXPECT_NEAR(out[0], 0.0F, 1e-30F);
  EXPECT_NEAR(out[1], 56.0F, 1e-3F);  // Both are taken for 7.
  EXPECT_EQ(out[1], out[2]);
  EXPECT_EQ(out[3], 0.0F);
  EXPECT_NEAR(out[4], -6 / (1 + std::exp(-1.702)), 1e-5);
  EXPECT_TRUE(std::isnan(out[5]));
  EXPECT_TRUE(std::isnan(out[6]));
}

}  // namespace
}  // namespace foretoken
