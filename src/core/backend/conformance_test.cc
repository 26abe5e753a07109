// Every backend against the reference, and batch invariance (docs/understand/verification.md) bit
// by bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/numbers/integers.h"
#include "base/numbers/philox.h"
#include "core/backend/conformance_testing.h"

namespace foretoken {
namespace {

using ::testing::Pointwise;

class OperationTest : public BackendTest {};

INSTANTIATE_TEST_SUITE_P(All, OperationTest, testing::ValuesIn(Subjects()),
                         [](const auto& param) { return param.param.Name(); });

TEST_P(OperationTest, MatMulAgreesWithReference) {
  auto backend = Make();
  auto reference = Reference();
  for (const auto& [outputs, inputs] :
       {std::pair{172, 64}, {64, 172}, {97, 33}, {16, 576}, {200, 192}, {5, 1}, {33, 1536}}) {
    const auto weights = Random(Size(outputs * inputs), 1);
    const TensorView view = ViewOf(weights, outputs);
    const Matrix packed = backend->Pack({&view, 1});
    const Matrix plain = reference->Pack({&view, 1});
    for (const int rows : {1, 2, 3, 7, 16, 17, 33, 64, 70}) {
      const auto x = Random(Size(rows * inputs), 2);
      std::vector<float> y(Size(rows * outputs), 3.0F);
      std::vector<float> expected(y.size());
      backend->MatMul(packed, x.data(), rows, y.data());
      reference->MatMul(plain, x.data(), rows, expected.data());
      const float tolerance = Tolerance(1e-5F * static_cast<float>(inputs) + 1e-5F);
      ASSERT_THAT(y, Pointwise(NearBy(tolerance), expected))
          << outputs << " x " << inputs << ", " << rows << " rows";
      y = Random(y.size(), 4);
      expected = y;
      backend->MatMulAdd(packed, x.data(), rows, y.data());
      reference->MatMulAdd(plain, x.data(), rows, expected.data());
      ASSERT_THAT(y, Pointwise(NearBy(tolerance), expected));
    }
  }
}

TEST_P(OperationTest, MatMulRowsDoNotDependOnTheirBatchOrThreads) {
  ThreadPool pool({0, 1});
  auto backend = Make();
  auto threaded = Make(&pool);
  const bool slow = GetParam().kernels == &cpu::amx_emulated::Table() ||
                    GetParam().kernels == &cpu::fused::Table();
  std::vector<std::pair<int, int>> shapes = {{172, 64}, {64, 172}, {192, 576}, {100, 1536}};
  if (!slow) shapes.insert(shapes.end(), {{512, 2048}, {2048, 64}, {576, 1536}});
  if (!slow) shapes.push_back({49152, 64});
  for (const auto& [outputs, inputs] : shapes) {
    const auto weights = Random(Size(outputs) * inputs, 1);
    const TensorView view = ViewOf(weights, outputs);
    const Matrix packed = backend->Pack({&view, 1});
    const int most = outputs > 10000 ? 17 : 70;
    const auto x = Random(Size(most * inputs), 2);
    const auto base = Random(Size(most) * outputs, 3);
    std::vector<float> alone(base.size());
    std::vector<float> alone_added = base;
    for (int r = 0; r < most; ++r) {
      const std::size_t at = Size(r) * outputs;
      backend->MatMul(packed, x.data() + r * inputs, 1, alone.data() + at);
      backend->MatMulAdd(packed, x.data() + r * inputs, 1, alone_added.data() + at);
    }
    for (int rows = 1; rows <= most; rows += rows < 36 ? 1 : 7) {
      for (Backend* each : {backend.get(), threaded.get()}) {
        const std::size_t count = Size(rows) * outputs;
        std::vector<float> y(count);
        each->MatMul(packed, x.data(), rows, y.data());
        ASSERT_TRUE(SameBits(y.data(), alone.data(), count)) << rows << " rows of " << outputs;
        // From another place in the batch.
        const int skip = most - rows;
        std::copy_n(base.data() + Size(skip) * outputs, count, y.data());
        each->MatMulAdd(packed, x.data() + skip * inputs, rows, y.data());
        ASSERT_TRUE(SameBits(y.data(), alone_added.data() + Size(skip) * outputs, count))
            << rows << " rows of " << outputs;
      }
    }
  }
}

TEST_P(OperationTest, PackStacksPartsAndEmbedReadsThemBack) {
  auto backend = Make();
  auto reference = Reference();
  const auto first = Random(35 * 50, 1);
  const auto second = Random(21 * 50, 2);
  const TensorView parts[] = {ViewOf(first, 35), ViewOf(second, 21)};
  const Matrix packed = backend->Pack(parts);
  const Matrix plain = reference->Pack(parts);
  EXPECT_EQ(packed.outputs, 56);
  EXPECT_EQ(packed.inputs, 50);
  const Token tokens[] = {0, 55, 34, 35, 17, 17};
  std::vector<float> out(6 * 50);
  std::vector<float> expected(out.size());
  backend->Embed(packed, tokens, out.data());
  reference->Embed(plain, tokens, expected.data());
  EXPECT_TRUE(SameBits(out.data(), expected.data(), out.size()));
}

TEST_P(OperationTest, NormsAndGates) {
  ThreadPool pool({0, 1});
  auto backend = Make(&pool);
  auto reference = Reference();
  for (const int width : {1, 16, 33, 64, 172, 576, 2048}) {
    const int rows = width == 2048 ? 150 : 5;
    const auto x = Random(Size(2 * rows * width), 1, 4.0F);
    const auto gain = Random(Size(width), 2);
    std::vector<float> out(Size(rows * width));
    std::vector<float> expected(out.size());
    std::vector<float> alone(width);
    backend->RmsNorm(x.data(), gain.data(), 1e-5F, rows, width, out.data());
    reference->RmsNorm(x.data(), gain.data(), 1e-5F, rows, width, expected.data());
    EXPECT_THAT(out, Pointwise(NearBy(Tolerance(2e-5F)), expected)) << width;
    backend->RmsNorm(x.data() + 3 * width, gain.data(), 1e-5F, 1, width, alone.data());
    EXPECT_TRUE(SameBits(alone.data(), out.data() + 3 * width, alone.size()));
    std::vector<float> in_place(x.begin(), x.begin() + rows * width);
    backend->RmsNorm(in_place.data(), gain.data(), 1e-5F, rows, width, in_place.data());
    EXPECT_TRUE(SameBits(in_place.data(), out.data(), out.size()));

    backend->LayerNorm(x.data(), gain.data(), gain.data(), 1e-5F, rows, width, out.data());
    reference->LayerNorm(x.data(), gain.data(), gain.data(), 1e-5F, rows, width, expected.data());
    EXPECT_THAT(out, Pointwise(NearBy(Tolerance(2e-5F)), expected)) << width;
    backend->LayerNorm(x.data() + 3 * width, gain.data(), gain.data(), 1e-5F, 1, width,
                       alone.data());
    EXPECT_TRUE(SameBits(alone.data(), out.data() + 3 * width, alone.size()));
    backend->LayerNorm(x.data(), gain.data(), nullptr, 1e-5F, rows, width, in_place.data());
    reference->LayerNorm(x.data(), gain.data(), nullptr, 1e-5F, rows, width, expected.data());
    EXPECT_THAT(in_place, Pointwise(NearBy(Tolerance(2e-5F)), expected)) << width;

    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh,
                                        Activation::kClampedSwish, Activation::kSigmoid}) {
      backend->GatedMul(activation, x.data(), rows, width, out.data());
      reference->GatedMul(activation, x.data(), rows, width, expected.data());
      EXPECT_THAT(out, Pointwise(NearBy(Tolerance(2e-5F)), expected)) << width;
      backend->GatedMul(activation, x.data() + 6 * width, 1, width, alone.data());
      EXPECT_TRUE(SameBits(alone.data(), out.data() + 3 * width, alone.size()));
    }
  }
}

TEST_P(OperationTest, PartsOfRowsAreNormalisedInPlace) {
  ThreadPool pool({0, 1});
  auto backend = Make(&pool);
  const auto x = Random(300 * 7 * 16, 1, 4.0F);
  const auto gains = Random(3 * 16, 2);
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const bool gain_of_each : {false, true}) {
      std::vector<float> out = x;
      backend->NormParts({kind, 1e-5F, gains.data(), gain_of_each}, 300, 7 * 16, 3, 16,
                         out.data() + 16);
      for (int row = 0; row < 300; ++row) {
        for (int part = 0; part < 7; ++part) {
          const std::size_t at = Size(row * 7 + part) * 16;
          std::vector<float> expected(x.begin() + at, x.begin() + at + 16);
          const float* gain = gains.data() + (gain_of_each ? (part - 1) * 16 : 0);
          if (part >= 1 && part < 4 && kind == NormKind::kRms) {
            backend->RmsNorm(expected.data(), gain, 1e-5F, 1, 16, expected.data());
          } else if (part >= 1 && part < 4) {
            backend->LayerNorm(expected.data(), gain, nullptr, 1e-5F, 1, 16, expected.data());
          }
          ASSERT_TRUE(SameBits(out.data() + at, expected.data(), 16));
        }
      }
    }
  }
}

TEST_P(OperationTest, CappedLogitsHaveTheirMaxima) {
  ThreadPool pool({0, 1});
  auto backend = Make(&pool);
  auto reference = Reference();
  constexpr int kVocabulary = 30'001;
  auto logits = Random(3 * kVocabulary, 4, 30.0F);
  logits[5] = 1e6F;
  logits[6] = -1e6F;
  auto expected = logits;
  std::vector<float> maxima(3 * Logits::Groups(kVocabulary));
  std::vector<float> largest(maxima.size());
  backend->CapLogits(30.0F, 3, kVocabulary, logits.data(), maxima.data());
  reference->CapLogits(30.0F, 3, kVocabulary, expected.data(), largest.data());
  EXPECT_THAT(logits, Pointwise(NearBy(Tolerance(1e-5F)), expected));
  EXPECT_THAT(maxima, Pointwise(NearBy(Tolerance(1e-5F)), largest));
  EXPECT_EQ(logits[5], 30.0F);
  EXPECT_EQ(logits[6], -30.0F);
  EXPECT_EQ(maxima[0], 30.0F);
}

TEST_P(OperationTest, RowsAreFilledScaledAndAdded) {
  auto backend = Make();
  const auto x = Random(33, 1);
  std::vector<float> y(99);
  backend->FillRows(x.data(), 3, 33, y.data());
  backend->Scale(3.0F, 66, y.data());
  backend->Add(y.data(), 33, y.data() + 66);
  for (std::size_t i = 0; i < 33; ++i) {
    EXPECT_EQ(y[i], x[i] * 3);
    EXPECT_EQ(y[33 + i], x[i] * 3);
    EXPECT_EQ(y[66 + i], x[i] + x[i] * 3);
  }
}

TEST_P(OperationTest, GatesOfExtremeSize) {
  auto backend = Make();
  const float gate_up[] = {-1000.0F, 1000.0F, -90.0F, 0.0F, 2.0F, 3.0F, 5.0F, 7.0F};
  for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
    float out[4];
    backend->GatedMul(activation, gate_up, 1, 4, out);
    EXPECT_NEAR(out[0], 0.0F, 1e-30F);
    EXPECT_EQ(out[1], 3000.0F);
    EXPECT_NEAR(out[2], 0.0F, 1e-30F);
    EXPECT_EQ(out[3], 0.0F);
  }
}

TEST_P(OperationTest, DrawsAreThoseOfPhilox) {
  for (const std::uint64_t seed : {0ULL, 0x123456789ABCDEF0ULL, ~0ULL}) {
    for (const std::uint64_t position : {0ULL, 77ULL, 0xFFFFFFFFFULL}) {
      for (const std::uint32_t group : {0U, 1U, 800U, 0x1FFFFFFU / 2}) {
        std::uint32_t draws[cpu::kNoiseGroup];
        GetParam().kernels->draw_group(seed, position, group, draws);
        for (std::uint32_t i = 0; i < cpu::kNoiseGroup; ++i) {
          ASSERT_EQ(draws[i], PhiloxDraw(seed, position, group * cpu::kNoiseGroup + i,
                                         NoisePurpose::kSampling));
        }
      }
    }
  }
}

// Logits of several kinds: plain, with tokens masked, all alike, sharply peaked, with huge values,
// two of all, with NaN.
std::vector<float> LogitsOf(int kind, int vocabulary, std::uint32_t seed) {
  auto logits = Random(Size(vocabulary), seed, kind == 3 ? 8.0F : 2.0F);
  std::mt19937 generator(seed);
  switch (kind) {
    case 1:
      for (float& z : logits) {
        if (generator() % 100 != 0) z = -std::numeric_limits<float>::infinity();
      }
      break;
    case 2:
      std::fill(logits.begin(), logits.end(), 1.5F);
      break;
    case 3:
      logits[generator() % logits.size()] = 60.0F;
      break;
    case 4:
      for (float& z : logits) z = std::round(z * 4) * 1e6F;
      break;
    case 5:
      std::fill(logits.begin(), logits.end(), -std::numeric_limits<float>::infinity());
      logits[3] = 0.0F;
      logits[logits.size() - 1] = 1.0F;
      break;
    case 6:  // NaN leads every group.
      for (std::size_t i = 0; i < logits.size(); ++i) {
        if (i % kLogitGroup < 9) logits[i] = std::numeric_limits<float>::quiet_NaN();
      }
      break;
    default:
      break;
  }
  return logits;
}

// The largest of every group, NaN left out, in the plainest way.
std::vector<float> MaximaOf(std::span<const float> logits) {
  std::vector<float> maxima;
  for (std::size_t begin = 0; begin < logits.size(); begin += kLogitGroup) {
    const auto group =
        logits.subspan(begin, std::min<std::size_t>(kLogitGroup, logits.size() - begin));
    float most = -std::numeric_limits<float>::infinity();
    for (const float logit : group) most = std::fmax(most, logit);
    maxima.push_back(most);
  }
  return maxima;
}

TEST_P(OperationTest, MatMulMaximaIsMatMulAndItsMaxima) {
  ThreadPool pool({0, 1});
  auto backend = Make();
  auto threaded = Make(&pool);
  const bool slow = GetParam().kernels == &cpu::amx_emulated::Table() ||
                    GetParam().kernels == &cpu::fused::Table();
  const int inputs = 64;
  for (const int outputs : {5, 128, 130, 1100, slow ? 2048 : 49152}) {
    auto weights = Random(Size(outputs) * inputs, 1);
    weights[0] = std::numeric_limits<float>::quiet_NaN();
    const TensorView view = ViewOf(weights, outputs);
    const Matrix packed = backend->Pack({&view, 1});
    for (const int rows : {1, 3, 17, 70}) {
      const auto x = Random(Size(rows * inputs), 2);
      std::vector<float> expected(Size(rows) * outputs);
      backend->MatMul(packed, x.data(), rows, expected.data());
      const std::size_t groups = Logits::Groups(outputs);
      for (Backend* each : {backend.get(), threaded.get()}) {
        std::vector<float> y(expected.size());
        std::vector<float> maxima(Size(rows) * groups);
        each->MatMulMaxima(packed, x.data(), rows, y.data(), maxima.data());
        ASSERT_TRUE(SameBits(y.data(), expected.data(), y.size())) << rows << " of " << outputs;
        for (int r = 0; r < rows; ++r) {
          const auto wanted = MaximaOf(std::span(expected).subspan(Size(r) * outputs, outputs));
          ASSERT_TRUE(SameBits(maxima.data() + r * groups, wanted.data(), groups));
        }
      }
    }
  }
}

TEST_P(OperationTest, NoisyTopIsExact) {
  auto backend = Make();
  auto reference = Reference();
  for (const int vocabulary : {5, 64, 512, 2048, 49152, 151936}) {
    for (int kind = 0; kind < 7; ++kind) {
      const auto logits = LogitsOf(kind, vocabulary, static_cast<std::uint32_t>(kind + vocabulary));
      const auto maxima = MaximaOf(logits);
      for (const float temperature : {0.0F, 1e-38F, 1e-6F, 0.3F, 1.0F, 2.0F, 1e6F}) {
        if (vocabulary > 10000 && temperature != 0.0F && temperature != 1.0F && kind > 1) continue;
        for (const std::size_t n : {std::size_t{1}, std::size_t{3}, std::size_t{8}}) {
          if (vocabulary > 10000 && n == 3) continue;
          const NoiseKey noise{static_cast<std::uint64_t>(kind) * 7919, n + 100};
          std::vector<Candidate> best(n);
          const std::string question = fmt::format("{}: {}, kind {}, T {}, {}", NumericsName(),
                                                   vocabulary, kind, temperature, n);
          const std::vector<Candidate>& expected = Once(question, [&] {
            std::vector<Candidate> top(n);
            top.resize(reference->NoisyTop(logits.data(), vocabulary, temperature, noise, top));
            return top;
          });
          for (const float* known : {static_cast<const float*>(nullptr), maxima.data()}) {
            const std::size_t found = backend->NoisyTop(Logits(logits.data(), known), vocabulary,
                                                        temperature, noise, best);
            ASSERT_EQ(found, expected.size());
            for (std::size_t i = 0; i < found; ++i) {
              ASSERT_EQ(best[i].token, expected[i].token)
                  << vocabulary << " kind " << kind << " T " << temperature << " rank " << i;
              ASSERT_EQ(best[i].score, expected[i].score);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
