#include "core/weights/arrange/gathered_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

std::vector<float> FloatsOf(const std::vector<std::byte>& bytes) {
  const auto* first = reinterpret_cast<const float*>(bytes.data());
  return {first, first + bytes.size() / sizeof(float)};
}

const float kNumbers[] = {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32};
const TensorView kMatrix{WeightFormat::kF32, {4, 3}, reinterpret_cast<const std::byte*>(kNumbers)};

TEST(GatheredRows, OfAMatrix) {
  const Stretch rows[] = {{2, 2}, {0, 1}};
  EXPECT_THAT(FloatsOf(GatheredRows(kMatrix, rows)),
              ::testing::ElementsAre(20, 21, 22, 30, 31, 32, 0, 1, 2));
}

TEST(GatheredRows, OfAVector) {
  const TensorView vector{WeightFormat::kF32, {12}, kMatrix.data};
  const Stretch numbers[] = {{11, 1}, {0, 2}};
  EXPECT_THAT(FloatsOf(GatheredRows(vector, numbers)), ::testing::ElementsAre(32, 0, 1));
}

TEST(GatheredRows, Columns) {
  const Stretch columns[] = {{2, 1}, {0, 2}};
  EXPECT_THAT(FloatsOf(GatheredColumns(kMatrix, columns)),
              ::testing::ElementsAre(2, 0, 1, 12, 10, 11, 22, 20, 21, 32, 30, 31));
}

}  // namespace
}  // namespace foretoken
