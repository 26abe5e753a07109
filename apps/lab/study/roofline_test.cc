#include "apps/lab/study/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

// Llama-3.1-8B without its output head, and the paper's GPU as measured (Appendix B).
constexpr ModelShape kLlama8b = {
    .layers = 32, .hidden = 4096, .query_heads = 32, .kv_heads = 8, .head_dim = 128, .mlp = 14336};
constexpr DeviceRoof kPaperGpu = {.flops = 165e12, .bytes_per_second = 0.95e12};

TEST(Roofline, KneeIsThePapers) { EXPECT_NEAR(kPaperGpu.knee(), 174, 0.4); }

// Table 2's FLOPs:IO column, p and g as in its rows.
TEST(Roofline, IntensitiesAreTable2s) {
  constexpr double h = 4096, g = 4, h_mlp = 14336;
  for (const int p : {1, 2, 8}) {
    for (const double b : {1.0, 8.0, 64.0}) {
      for (const double s_q : {1.0, 22.0}) {
        for (const double s_kv : {100.0, 30000.0}) {
          const PassShape pass = {b, s_q, s_kv, p};
          const double rows = b * s_q;
          const auto intensity = [&](RooflineOp op) {
            return RooflineCost(op, kLlama8b, pass, 1).intensity();
          };
          const auto expect = [](double actual, double inverse) {
            EXPECT_NEAR(actual * inverse, 1, 1e-12);
          };
          expect(intensity(RooflineOp::kQuery), (p + 1) / h + 1 / rows);
          expect(intensity(RooflineOp::kKey), (g * p + 1) / h + 1 / rows);
          expect(intensity(RooflineOp::kValue), (g * p + 1) / h + 1 / rows);
          expect(intensity(RooflineOp::kOutput), (p + 1) / h + 1 / rows);
          expect(intensity(RooflineOp::kGateUp), 1 / (2 * h) + p / (2 * h_mlp) + 1 / rows);
          expect(intensity(RooflineOp::kDown), 1 / h + p / h_mlp + 1 / rows);
          // Holds with 1 byte a mask element, as the caption says, not with the 2 of its row.
          expect(intensity(RooflineOp::kAttention), 1 / (g * s_q) + 1 / (s_kv + s_q) + p / (4 * h));
        }
      }
    }
  }
}

TEST(Roofline, CountsAreTable2s) {
  constexpr double h = 4096, g = 4, h_mlp = 14336, b = 8, s_q = 5, s_kv = 1000, p = 2;
  const PassShape pass = {b, s_q, s_kv, static_cast<int>(p)};
  const auto expect = [&](RooflineOp op, double flops, double read, double write) {
    const OpCost cost = RooflineCost(op, kLlama8b, pass, 1);
    EXPECT_DOUBLE_EQ(cost.flops, flops) << RooflineOpName(op);
    EXPECT_DOUBLE_EQ(cost.read, read) << RooflineOpName(op);
    EXPECT_DOUBLE_EQ(cost.write, write) << RooflineOpName(op);
  };
  const double r = b * s_q;
  const double keys = s_kv + s_q;
  expect(RooflineOp::kQuery, 2 * r * h * h / p, 2 * (r * h + h * h / p), 2 * r * h / p);
  expect(RooflineOp::kKey, 2 * r * h * h / (g * p), 2 * (r * h + h * h / (g * p)),
         2 * r * h / (g * p));
  expect(RooflineOp::kAttention, 4 * r * keys * h / p,
         2 * (b * h / (g * p) * (2 * keys + g * s_q)) + r * keys, 2 * r * h / p);
  expect(RooflineOp::kOutput, 2 * r * h * h / p, 2 * (r * h / p + h * h / p), 2 * r * h);
  expect(RooflineOp::kGateUp, 4 * r * h * h_mlp / p, 2 * (r * h + 2 * h * h_mlp / p),
         2 * r * h_mlp / p);
  expect(RooflineOp::kDown, 2 * r * h * h_mlp / p, 2 * (r * h_mlp / p + h * h_mlp / p), 2 * r * h);
}

// Appendix B: b s_q about 174, which at b = 8 is s_q = 22. The exact limits of the wide products
// lie a little above, since their inputs and outputs are moved too.
TEST(Roofline, KneeRowsAreWhereComputingTakesOver) {
  for (const RooflineOp op : kRooflineOps) {
    if (op == RooflineOp::kAttention || op == RooflineOp::kHead) continue;
    const auto knee = KneeRows(op, kLlama8b, 1, kPaperGpu);
    ASSERT_TRUE(knee.has_value());
    EXPECT_GT(*knee, kPaperGpu.knee());
    EXPECT_LT(*knee, 1.3 * kPaperGpu.knee());
    const OpCost cost = RooflineCost(op, kLlama8b, {.batch = *knee}, 1);
    EXPECT_NEAR(cost.flops / kPaperGpu.flops, cost.bytes() / kPaperGpu.bytes_per_second, 1e-12);
  }
  // 1 / I_knee - 2 / h = 1 / (b s_q)
  EXPECT_NEAR(*KneeRows(RooflineOp::kQuery, kLlama8b, 1, kPaperGpu), 189.8, 0.1);
}

TEST(Roofline, ANarrowModelMayNeverBeComputeBound) {
  ModelShape narrow = kLlama8b;
  narrow.hidden = 256;
  EXPECT_FALSE(KneeRows(RooflineOp::kQuery, narrow, 16, kPaperGpu).has_value());
}

TEST(Roofline, HalfTheWeightBytesHalveTheFreeRows) {
  ModelShape quantised = kLlama8b;
  quantised.weight_bytes = 1;
  EXPECT_NEAR(*KneeRows(RooflineOp::kDown, quantised, 1, kPaperGpu) /
                  *KneeRows(RooflineOp::kDown, kLlama8b, 1, kPaperGpu),
              0.5, 1e-12);
}

TEST(Roofline, RowsThatChooseOtherExpertsReadOtherWeights) {
  ModelShape moe = kLlama8b;
  moe.experts = 64;
  moe.chosen = 8;
  const auto cost = [](const ModelShape& shape, double rows) {
    return RooflineCost(RooflineOp::kGateUp, shape, {.speculation = rows}, 0);
  };
  EXPECT_DOUBLE_EQ(cost(moe, 1).read, 8 * cost(kLlama8b, 1).read);
  EXPECT_DOUBLE_EQ(cost(moe, 3).flops, 8 * cost(kLlama8b, 3).flops);
  const double one = 2.0 * 4096 * 14336 * 2;  // Bytes of an expert.
  // Bytes of 16 rows of inputs, for each expert that they choose.
  const double rows = 2.0 * 4096 * 8 * 16;
  EXPECT_NEAR((cost(moe, 16).read - rows) / one, 64 * (1 - std::pow(7.0 / 8, 16)), 1e-9);
  EXPECT_DOUBLE_EQ(ExpertsRead(64, 8, 1), 8);
  EXPECT_NEAR(ExpertsRead(64, 8, 1000), 64, 1e-9);
  // Each expert meets an eighth of the rows.
  const double knee = *KneeRows(RooflineOp::kDown, moe, 1, kPaperGpu);
  EXPECT_NEAR(knee / *KneeRows(RooflineOp::kDown, kLlama8b, 1, kPaperGpu), 8, 1e-6);
  EXPECT_EQ(KneeRows(RooflineOp::kQuery, moe, 1, kPaperGpu),
            KneeRows(RooflineOp::kQuery, kLlama8b, 1, kPaperGpu));
}

TEST(Roofline, SmallerKeysAndValuesAreReadFaster) {
  ModelShape small = kLlama8b;
  small.kv_bytes = 1.125;
  const PassShape pass{.batch = 8, .context = 32767};
  const auto read = [&](const ModelShape& shape, RooflineOp op) {
    return RooflineCost(op, shape, pass, 0).read;
  };
  const double keys_and_values = 2.0 * 8 * 32768 * 8 * 128;
  EXPECT_DOUBLE_EQ(read(kLlama8b, RooflineOp::kAttention) - read(small, RooflineOp::kAttention),
                   0.875 * keys_and_values);
  EXPECT_EQ(read(kLlama8b, RooflineOp::kKey), read(small, RooflineOp::kKey));
}

// Figure 3a and b: at batch 8 the linear part is nearly flat up to s_q = 22 and steep after; at a
// long context the keys dominate and speculation is nearly free far beyond.
TEST(Roofline, PassesBendAtTheKnee) {
  const auto at = [](double s_q, double s_kv) {
    return RooflinePass(kLlama8b, {.batch = 8, .speculation = s_q, .context = s_kv}, kPaperGpu);
  };
  EXPECT_LT(at(22, 1000).linear, 1.15 * at(1, 1000).linear);
  EXPECT_GT(at(44, 1000).linear, 1.7 * at(22, 1000).linear);
  EXPECT_EQ(at(22, 1000).linear, at(22, 32000).linear);
  EXPECT_GT(at(1, 32000).attention, 2 * at(1, 32000).linear);
  EXPECT_LT(at(40, 32000).total(), 1.6 * at(1, 32000).total());
}

// All weights once (15 GB), at the bandwidth: what a plain pass costs.
TEST(Roofline, PlainDecodingReadsEveryWeight) {
  ModelShape whole = kLlama8b;
  whole.vocabulary = 128256;
  const double seconds = RooflinePass(whole, {}, kPaperGpu).total();
  EXPECT_NEAR(seconds, 2 * 7504.9e6 / kPaperGpu.bytes_per_second, 1e-4);
}

TEST(Roofline, SpeedupIsTokensOverRelativeCost) {
  const PassShape pass = {.batch = 8, .speculation = 64, .context = 1000};
  const double cost = RooflinePass(kLlama8b, pass, kPaperGpu).total() /
                      RooflinePass(kLlama8b, {.batch = 8, .context = 1000}, kPaperGpu).total();
  EXPECT_NEAR(RooflineSpeedup(kLlama8b, pass, kPaperGpu, 4), 4 / cost, 1e-12);
}

}  // namespace
}  // namespace foretoken
