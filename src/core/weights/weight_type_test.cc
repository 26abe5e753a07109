#include "core/weights/weight_type.h"

#include <gmock/gmock.h>

#include <fmt/core.h>

namespace foretoken {
namespace {

using enum WeightFormat;
using ::testing::HasSubstr;

WeightFormat Of(std::string_view type, std::string_view name, std::int64_t width = 4096,
                const MixBasis& model = {.layers = 32, .queries_per_kv_head = 4}) {
  return FormatFor(ParseWeightType(type).value(), {name, width, 2}, model);
}

std::string Down(int layer) { return fmt::format("layers.{}.down.weight", layer); }
std::string Values(int layer) { return fmt::format("layers.{}.v.weight", layer); }

TEST(WeightType, Names) {
  EXPECT_EQ(ParseWeightType("q4_k")->name, "q4_k_m");
  EXPECT_EQ(ParseWeightType("q4_k_s")->file_type, 14U);
  const auto unknown = ParseWeightType("q9");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("'q9' is no type of weights; there are q8_0, "));
}

// The layers of Q4_K_M in a model of 32: the first four, the last four and every third.
TEST(WeightType, MixesGiveSomeTensorsMoreBits) {
  for (int layer = 0; layer < 32; ++layer) {
    const bool more = layer < 4 || layer >= 28 || layer % 3 == 0;
    EXPECT_EQ(Of("q4_k_m", Down(layer)), more ? kQ6_K : kQ4_K) << layer;
    EXPECT_EQ(Of("q5_k_m", Values(layer)), more ? kQ6_K : kQ5_K) << layer;
    EXPECT_EQ(Of("q4_k_s", Down(layer)), layer < 4 ? kQ5_K : kQ4_K) << layer;
    EXPECT_EQ(Of("q3_k_m", Values(layer)), layer < 2 ? kQ5_K : kQ4_K) << layer;
    EXPECT_EQ(Of("q6_k", Down(layer)), kQ6_K);
    EXPECT_EQ(Of("q4_0", Values(layer)), kQ4_0);
    EXPECT_EQ(Of("iq4_nl", Down(layer)), kIQ4_NL);
    EXPECT_EQ(Of("mxfp4", Values(layer)), kMXFP4);
  }
  EXPECT_EQ(Of("q3_k_m", Down(0)), kQ5_K);
  EXPECT_EQ(Of("q3_k_m", Down(2)), kQ4_K);
  EXPECT_EQ(Of("q3_k_m", Down(4)), kQ3_K);
  EXPECT_EQ(Of("q2_k", Values(9)), kQ4_K);
  EXPECT_EQ(Of("q2_k", Values(9), 4096, {.layers = 32, .queries_per_kv_head = 1}), kQ3_K);
  EXPECT_EQ(Of("q2_k", "layers.3.o.weight"), kQ3_K);
  EXPECT_EQ(Of("q2_k", "layers.3.up.weight"), kQ2_K);
}

TEST(WeightType, HeadsNormsAndWidths) {
  const MixBasis tied{.layers = 32, .tied_embeddings = true};
  EXPECT_EQ(Of("q4_0", "head.weight"), kQ6_K);
  EXPECT_EQ(Of("q4_0", "embedding.weight"), kQ4_0);
  EXPECT_EQ(Of("q4_0", "embedding.weight", 4096, tied), kQ6_K);
  EXPECT_EQ(Of("q8_0", "head.weight"), kQ8_0);
  EXPECT_EQ(Of("mxfp4", "head.weight"), kQ6_K);
  EXPECT_EQ(Of("f16", "head.weight"), kF16);
  EXPECT_EQ(FormatFor(ParseWeightType("bf16").value(), {"output_norm.weight", 4096, 1}, tied),
            kF32);
  EXPECT_EQ(Of("q4_k_m", "layers.9.up.weight", 4096 + 32), kQ5_0);
  EXPECT_EQ(Of("q4_0", "head.weight", 96), kQ8_0);
  EXPECT_EQ(Of("q4_0", "layers.9.up.weight", 100), kF16);
  EXPECT_EQ(Of("bf16", "layers.9.delta.taps.weight", 4), kF32);
}

}  // namespace
}  // namespace foretoken
