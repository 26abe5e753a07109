// What experts need: products of groups of rows, each with a matrix of its own, the choice of
// experts, and the sum of what they make.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "backend/conformance_testing.h"

namespace foretoken {
namespace {

class ExpertsTest : public BackendTest {};

INSTANTIATE_TEST_SUITE_P(All, ExpertsTest, testing::ValuesIn(Subjects()),
                         [](const auto& param) { return param.param.Name(); });

constexpr int kOutputs = 1000;  // No whole number of panels.
constexpr int kInputs = 96;
constexpr int kMatrices = 5;
const std::vector<RowGroup> kGroups = {{3, 0, 1}, {0, 1, 4}, {4, 4, 24}, {1, 24, 25}};

std::vector<std::vector<float>> Matrices() {
  std::vector<std::vector<float>> matrices;
  for (int i = 0; i < kMatrices; ++i) {
    matrices.push_back(Random(std::size_t{kOutputs} * kInputs, static_cast<std::uint32_t>(i)));
  }
  return matrices;
}

Matrix StackOf(const std::vector<std::vector<float>>& matrices, Backend* backend) {
  const TensorView first = ViewOf(matrices[0], kOutputs);
  Matrix stack = backend->MakeStack({&first, 1}, kMatrices);
  for (int i = 0; i < kMatrices; ++i) {
    const TensorView view = ViewOf(matrices[static_cast<std::size_t>(i)], kOutputs);
    backend->PackInto({&view, 1}, i, &stack);
  }
  return stack;
}

TEST_P(ExpertsTest, GroupsOfRowsMeetTheirMatricesAsAlone) {
  ThreadPool pool({0, 1});
  const auto matrices = Matrices();
  const auto x = Random(25 * kInputs, 10);
  const auto bias = Random(std::size_t{kMatrices} * kOutputs, 11);
  for (ThreadPool* workers : {static_cast<ThreadPool*>(nullptr), &pool}) {
    const auto backend = Make(workers);
    const Matrix stack = StackOf(matrices, backend.get());
    std::vector<float> plain(std::size_t{25} * kOutputs);
    std::vector<float> biased(plain.size());
    backend->MatMulGroups(stack, kGroups, nullptr, x.data(), plain.data());
    backend->MatMulGroups(stack, kGroups, bias.data(), x.data(), biased.data());
    for (const RowGroup& group : kGroups) {
      const TensorView view = ViewOf(matrices[static_cast<std::size_t>(group.matrix)], kOutputs);
      const Matrix matrix = backend->Pack({&view, 1});
      for (int row = group.begin; row < group.end; ++row) {
        std::vector<float> alone(kOutputs);
        backend->MatMul(matrix, x.data() + row * kInputs, 1, alone.data());
        ASSERT_TRUE(SameBits(alone.data(), plain.data() + row * kOutputs, kOutputs)) << row;
        backend->FillRows(bias.data() + group.matrix * kOutputs, 1, kOutputs, alone.data());
        backend->MatMulAdd(matrix, x.data() + row * kInputs, 1, alone.data());
        ASSERT_TRUE(SameBits(alone.data(), biased.data() + row * kOutputs, kOutputs)) << row;
      }
    }
  }
}

TEST_P(ExpertsTest, GroupsAgreeWithReference) {
  const auto matrices = Matrices();
  const auto x = Random(25 * kInputs, 10);
  const auto bias = Random(std::size_t{kMatrices} * kOutputs, 11);
  std::vector<float> results[2];
  const std::unique_ptr<Backend> backends[] = {Make(), Reference()};
  for (int i = 0; i < 2; ++i) {
    results[i].resize(std::size_t{25} * kOutputs);
    const Matrix stack = StackOf(matrices, backends[i].get());
    backends[i]->MatMulGroups(stack, kGroups, bias.data(), x.data(), results[i].data());
  }
  EXPECT_THAT(results[0], testing::Pointwise(NearBy(Tolerance(1e-4F)), results[1]));
}

TEST_P(ExpertsTest, RowsChooseTheLargestScoresAndWeighTheirSoftmax) {
  const auto backend = Make();
  const auto reference = Reference();
  constexpr int kRows = 9;
  for (const int experts : {1, 4, 33, 128}) {
    for (const auto softmax : {Routing::Softmax::kOfAll, Routing::Softmax::kOfChosen}) {
      const Routing routing{experts, std::min(experts, 3), softmax};
      const auto scores = Random(static_cast<std::size_t>(kRows * experts), 7, 3.0F);
      const auto count = static_cast<std::size_t>(kRows * routing.chosen);
      std::vector<std::int32_t> chosen(count);
      std::vector<std::int32_t> expected(count);
      std::vector<float> weights(count);
      std::vector<float> expected_weights(count);
      backend->Route(routing, scores.data(), kRows, chosen.data(), weights.data());
      reference->Route(routing, scores.data(), kRows, expected.data(), expected_weights.data());
      EXPECT_EQ(chosen, expected);
      EXPECT_THAT(weights, testing::Pointwise(NearBy(Tolerance(1e-6F)), expected_weights));
      for (int row = 0; row < kRows; ++row) {
        const auto of_row = scores.begin() + row * experts;
        std::vector<std::int32_t> order(static_cast<std::size_t>(experts));
        std::iota(order.begin(), order.end(), 0);
        std::ranges::sort(order, [&](int a, int b) { return of_row[a] > of_row[b]; });
        order.resize(static_cast<std::size_t>(routing.chosen));
        const auto at = chosen.begin() + row * routing.chosen;
        EXPECT_EQ(std::vector<std::int32_t>(at, at + routing.chosen), order);
        double sum = 0;
        for (int i = 0; i < routing.chosen; ++i) {
          sum += weights[static_cast<std::size_t>(row * routing.chosen + i)];
        }
        if (softmax == Routing::Softmax::kOfChosen) {
          EXPECT_NEAR(sum, 1, 1e-6);
        } else if (experts > 4) {
          EXPECT_LT(sum, 0.9999);
        }
      }
      float alone[3];
      backend->Route(routing, scores.data() + 4 * experts, 1, expected.data(), alone);
      EXPECT_TRUE(SameBits(alone, weights.data() + 4 * routing.chosen,
                           static_cast<std::size_t>(routing.chosen)));
    }
  }
}

TEST_P(ExpertsTest, EqualScoresAreTakenInOrderAndNoNumberLast) {
  const auto backend = Make();
  const float none = std::numeric_limits<float>::quiet_NaN();
  const float scores[] = {none, 2, 5, 2, none, 5, 1, 2};
  std::int32_t chosen[8];
  float weights[8];
  backend->Route({8, 4, Routing::Softmax::kOfChosen}, scores, 1, chosen, weights);
  EXPECT_THAT(std::span(chosen, 4), testing::ElementsAre(2, 5, 1, 3));
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[2], weights[3]);
  backend->Route({8, 8, Routing::Softmax::kOfChosen}, scores, 1, chosen, weights);
  EXPECT_THAT(chosen, testing::ElementsAre(2, 5, 1, 3, 7, 6, 0, 4));
}

TEST_P(ExpertsTest, RowsAreSummedWithTheirWeights) {
  ThreadPool pool({0, 1});
  const auto backend = Make(&pool);
  const auto reference = Reference();
  constexpr int kRows = 300;
  constexpr int kCount = 3;
  for (const int width : {1, 40, 512}) {
    const auto x = Random(static_cast<std::size_t>(kRows * kCount * width), 1);
    const auto weights = Random(kRows * kCount, 2);
    std::vector<std::int32_t> places(kRows * kCount);
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] = static_cast<std::int32_t>(i * 7 % places.size());
    }
    std::vector<float> out(static_cast<std::size_t>(kRows * width));
    std::vector<float> expected(out.size());
    backend->WeightedSums(x.data(), places.data(), weights.data(), kRows, kCount, width,
                          out.data());
    reference->WeightedSums(x.data(), places.data(), weights.data(), kRows, kCount, width,
                            expected.data());
    EXPECT_THAT(out, testing::Pointwise(NearBy(Tolerance(2e-6F)), expected));
    std::vector<float> alone(static_cast<std::size_t>(width));
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
