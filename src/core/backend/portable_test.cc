// Matrices of all formats, several of them in one, under the portable arithmetic: every instruction
// set gives the bits of the plain loops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/numbers/integers.h"
#include "core/backend/conformance_testing.h"
#include "core/tensor/half.h"

namespace foretoken {
namespace {

class PortableTest : public BackendTest {};

INSTANTIATE_TEST_SUITE_P(All, PortableTest, testing::ValuesIn(PortableSubjects()),
                         [](const auto& param) { return param.param.Name(); });

// Weights of a format with usual scales, in the file's layout.
struct Stored {
  WeightFormat format;
  std::int64_t rows;
  std::int64_t width;
  std::vector<std::byte> bytes;

  TensorView view() const { return {format, {rows, width}, bytes.data()}; }

  Stored(WeightFormat stored_format, std::int64_t height, std::int64_t across, std::uint32_t seed)
      : format(stored_format), rows(height), width(across) {
    std::mt19937 generator(seed);
    bytes.resize(FormatBytes(format, rows * width));
    if (IsQuantized(format)) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
      // The upper byte of every half is a small number, so that none that is a scale is infinite.
      for (std::size_t i = 1; i < bytes.size(); i += 2) bytes[i] &= std::byte{0xB3};
    } else {
      const std::vector<float> values = Random(Size(rows * width), seed, 0.1F);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (format == WeightFormat::kF32) {
          std::memcpy(bytes.data() + 4 * i, &values[i], 4);
        } else {
          const std::uint16_t bits = format == WeightFormat::kBF16
                                         ? std::bit_cast<std::uint16_t>(FloatToBFloat16(values[i]))
                                         : static_cast<std::uint16_t>(generator() & 0xB3FF);
          std::memcpy(bytes.data() + 2 * i, &bits, 2);
        }
      }
    }
  }
};

std::vector<WeightFormat> AllFormats() {
  std::vector<WeightFormat> formats;
  for (std::size_t i = 0; i < kWeightFormats; ++i) formats.push_back(static_cast<WeightFormat>(i));
  return formats;
}

TEST_P(PortableTest, ProductsOfEveryFormatAreThoseOfPlainLoops) {
  auto backend = Make();
  auto reference = Reference();
  for (const WeightFormat format : AllFormats()) {
    const Stored stored(format, 41, 512, 1);
    const TensorView view = stored.view();
    const Matrix packed = backend->Pack({&view, 1});
    const Matrix plain = reference->Pack({&view, 1});
    for (const int rows : {1, 3, 18}) {
      const auto x = Random(Size(rows) * 512, 2);
      auto y = Random(Size(rows) * 41, 3);
      auto expected = y;
      backend->MatMulAdd(packed, x.data(), rows, y.data());
      reference->MatMulAdd(plain, x.data(), rows, expected.data());
      ASSERT_TRUE(SameBits(y.data(), expected.data(), y.size())) << InfoOf(format).name;
      std::vector<float> maxima(rows);
      std::vector<float> largest(maxima.size());
      backend->MatMulMaxima(packed, x.data(), rows, y.data(), maxima.data());
      reference->MatMulMaxima(plain, x.data(), rows, expected.data(), largest.data());
      ASSERT_TRUE(SameBits(y.data(), expected.data(), y.size())) << InfoOf(format).name;
      ASSERT_TRUE(SameBits(maxima.data(), largest.data(), maxima.size()));
    }
    const Token tokens[] = {0, 17, 40};
    std::vector<float> rows_of(3 * 512);
    std::vector<float> expected_rows(rows_of.size());
    backend->Embed(packed, tokens, rows_of.data());
    reference->Embed(plain, tokens, expected_rows.data());
    ASSERT_TRUE(SameBits(rows_of.data(), expected_rows.data(), rows_of.size()));
  }
}

// As q, k and v of one layer may be stored differently.
TEST_P(PortableTest, AMatrixMayHaveSeveralFormats) {
  ThreadPool pool({0, 1});
  auto backend = Make();
  auto threaded = Make(&pool);
  auto reference = Reference();
  const std::vector<Stored> stored = {
      {WeightFormat::kQ4_K, 70, 1024, 1}, {WeightFormat::kQ4_K, 23, 1024, 2},
      {WeightFormat::kQ6_K, 40, 1024, 3}, {WeightFormat::kBF16, 33, 1024, 4},
      {WeightFormat::kF16, 5, 1024, 5},   {WeightFormat::kF32, 6, 1024, 6},
      {WeightFormat::kQ8_0, 900, 1024, 7}};
  std::vector<TensorView> parts;
  std::int64_t outputs = 0;
  for (const Stored& each : stored) {
    parts.push_back(each.view());
    outputs += each.rows;
  }
  const Matrix packed = backend->Pack(parts);
  const Matrix plain = reference->Pack(parts);
  EXPECT_EQ(packed.bands.size(), 5U);
  EXPECT_EQ(packed.outputs, outputs);
  for (const int rows : {1, 2, 7, 19}) {
    const auto x = Random(Size(rows) * 1024, 8);
    std::vector<float> expected(Size(rows * outputs));
    reference->MatMul(plain, x.data(), rows, expected.data());
    for (Backend* each : {backend.get(), threaded.get()}) {
      std::vector<float> y(expected.size());
      each->MatMul(packed, x.data(), rows, y.data());
      ASSERT_TRUE(SameBits(y.data(), expected.data(), y.size())) << rows;
    }
  }
  std::vector<float> out(1024);
  std::vector<float> row(1024);
  for (Token output = 0; output < outputs; ++output) {
    backend->Embed(packed, {&output, 1}, out.data());
    reference->Embed(plain, {&output, 1}, row.data());
    ASSERT_TRUE(SameBits(out.data(), row.data(), out.size())) << output;
  }
}

// As the gates and the rest of experts may be stored differently.
TEST_P(PortableTest, StacksOfSeveralFormatsAreThoseOfPlainLoops) {
  ThreadPool pool({0, 1});
  auto threaded = Make(&pool);
  auto backend = Make();
  auto reference = Reference();
  constexpr int kStackedMatrices = 3;
  constexpr int kRows = 23;
  const std::vector<RowGroup> groups = {{1, 0, 1}, {2, 1, 20}, {0, 20, kRows}};
  const auto x = Random(kRows * 512, 8);
  const auto bias = Random(kStackedMatrices * 1070, 9);
  std::vector<Stored> stored;
  std::vector<TensorView> all;
  for (std::uint32_t i = 0; i < kStackedMatrices; ++i) {
    stored.emplace_back(WeightFormat::kQ4_K, 41, 512, i);
    stored.emplace_back(WeightFormat::kMXFP4, 1000, 512, 10 + i);
    stored.emplace_back(WeightFormat::kBF16, 29, 512, 20 + i);
  }
  for (const Stored& part : stored) all.push_back(part.view());
  const auto packed = [&](Backend* by) {
    Matrix stack = by->MakeStack(std::span(all).first(3), kStackedMatrices);
    for (int i = 0; i < kStackedMatrices; ++i) {
      by->PackInto(std::span(all).subspan(Size(3 * i), 3), i, &stack);
    }
    return stack;
  };
  const auto product = [&](Backend* by, const Matrix& stack, const float* added) {
    std::vector<float> y(kRows * 1070);
    by->MatMulGroups(stack, groups, added, x.data(), y.data());
    return y;
  };
  for (const float* added : {static_cast<const float*>(nullptr), bias.data()}) {
    const auto expected = product(reference.get(), packed(reference.get()), added);
    for (Backend* each : {backend.get(), threaded.get()}) {
      const Matrix stacks[] = {packed(each), each->Borrow(all, kStackedMatrices)};
      for (const Matrix& stack : stacks) {
        const std::vector<float> y = product(each, stack, added);
        EXPECT_TRUE(SameBits(y.data(), expected.data(), y.size()));
      }
    }
  }
}

// Matrices of each format are borrowed, where nothing is packed before it is needed.
TEST_P(PortableTest, BorrowedMatricesAreThoseOfPlainLoops) {
  auto backend = Make();
  auto reference = Reference();
  constexpr int kLongInputs = 768;  // Three stretches.
  const auto x = Random(5 * kLongInputs, 8);
  for (const WeightFormat format : AllFormats()) {
    const Stored first(format, 50, kLongInputs, 1);
    const Stored second(format, 50, kLongInputs, 2);
    const std::vector<TensorView> parts = {first.view(), second.view()};
    const std::vector<RowGroup> groups = {{1, 0, 4}, {0, 4, 5}};
    std::vector<float> results[2];
    Backend* const backends[] = {backend.get(), reference.get()};
    for (int b = 0; b < 2; ++b) {
      results[b].resize(5 * 50);
      const Matrix stack = backends[b]->Borrow(parts, 2);
      backends[b]->MatMulGroups(stack, groups, nullptr, x.data(), results[b].data());
    }
    EXPECT_TRUE(SameBits(results[0].data(), results[1].data(), results[0].size()))
        << InfoOf(format).name;
  }
}

}  // namespace
}  // namespace foretoken
