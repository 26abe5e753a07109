#include "core/backend/cpu/products/packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/backend/cpu/quant/packing.h"
#include "core/tensor/half.h"

namespace foretoken::cpu {
namespace {

// The matrices that make a band.
std::span<const TensorView> PartsOf(std::span<const TensorView> parts, const MatrixBand& band) {
  std::int64_t output = 0;
  std::size_t first = 0;
  while (output < band.begin) output += parts[first++].shape[0];
  std::size_t end = first;
  while (output < band.end) output += parts[end++].shape[0];
  return parts.subspan(first, end - first);
}

// Weights that are BF16 already: pairs are copied.
void CopyPairs(const std::byte* from, std::int64_t inputs, int lane, std::byte* panel) {
  constexpr std::ptrdiff_t kPair = 2 * sizeof(BFloat16);
  std::byte* to = panel + lane * kPair;
  for (std::int64_t i = 0; i < inputs / 2; ++i, from += kPair, to += kPanel * kPair) {
    std::memcpy(to, from, kPair);
  }
  if (inputs % 2 == 1) std::memcpy(to, from, sizeof(BFloat16));
}

// `row`: of the stacked parts.
void PackFloats(std::span<const TensorView> parts, std::int64_t row, WeightFormat format, int lane,
                std::span<float> scratch, std::byte* panel) {
  auto part = parts.begin();
  while (row >= part->shape[0]) row -= part++->shape[0];
  const std::int64_t inputs = part->shape[1];
  if (format == WeightFormat::kBF16 && part->format == WeightFormat::kBF16) {
    const std::size_t before = FormatBytes(part->format, row * inputs);
    return CopyPairs(part->data + before, inputs, lane, panel);
  }
  float* const values = scratch.data();
  LoadElements(*part, row * inputs, inputs, values);
  if (format == WeightFormat::kBF16) {
    auto* const to = reinterpret_cast<BFloat16*>(panel) + std::ptrdiff_t{lane} * 2;
    for (std::int64_t i = 0; i < inputs; ++i) {
      to[i / 2 * 2 * kPanel + i % 2] = FloatToBFloat16(values[i]);
    }
  } else {
    float* const to = reinterpret_cast<float*>(panel) + lane;
    for (std::int64_t i = 0; i < inputs; ++i) to[i * kPanel] = values[i];
  }
}

}  // namespace

std::size_t PanelBytes(WeightFormat format, std::int64_t inputs) {
  if (IsQuantized(format)) return QuantPanelBytes(format, inputs);
  const std::size_t element = format == WeightFormat::kBF16 ? 2 : 4;
  return Size(kPanel * PadToChunk(static_cast<int>(inputs))) * element;
}

std::int64_t PanelsOf(const Matrix& matrix) {
  std::int64_t panels = 0;
  for (const MatrixBand& band : matrix.bands) panels += PanelsOf(band);
  return panels;
}

Matrix MakeMatrix(std::span<const TensorView> parts, int count,
                  WeightFormat (*stored_as)(WeightFormat)) {
  FT_CHECK(!parts.empty());
  Matrix matrix{.count = count};
  matrix.bands = BandsOf(parts, stored_as);
  matrix.outputs = matrix.bands.back().end;
  matrix.inputs = parts[0].shape.at(1);
  std::size_t bytes = 0;
  for (MatrixBand& band : matrix.bands) {
    band.offset = bytes;
    bytes += Size(PanelsOf(band)) * PanelBytes(band.format, matrix.inputs);
  }
  matrix.data = Buffer(bytes * count);
  return matrix;
}

Matrix BorrowMatrix(std::vector<TensorView> parts, int count,
                    WeightFormat (*stored_as)(WeightFormat)) {
  FT_CHECK(count > 0 && !parts.empty() && parts.size() % count == 0);
  const std::span<const TensorView> all = parts;
  const std::size_t of_each = parts.size() / count;
  Matrix matrix{.count = count};
  matrix.bands = BandsOf(all.first(of_each), stored_as);
  matrix.outputs = matrix.bands.back().end;
  matrix.inputs = parts[0].shape.at(1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorView& first = parts[i % of_each];
    FT_CHECK(parts[i].format == first.format && parts[i].shape == first.shape,
             "matrices of a stack differ in shape or format");
  }
  matrix.borrowed = std::move(parts);
  return matrix;
}

const std::byte* PanelAt(const Matrix& stack, int index, std::int64_t panel) {
  if (!stack.borrowed.empty()) return nullptr;
  const std::byte* at = nullptr;
  VisitBands(stack, panel, panel + 1, [&](const MatrixBand& band, std::int64_t from, std::int64_t) {
    at = stack.data.data() + Size(index) * stack.stride() + band.offset +
         Size(from) * PanelBytes(band.format, stack.inputs);
  });
  return at;
}

void PackBand(std::span<const TensorView> parts, const MatrixBand& band, std::int64_t begin,
              std::int64_t end, std::span<float> row, std::byte* to) {
  const std::span<const TensorView> own = PartsOf(parts, band);
  if (IsQuantized(band.format)) return PackQuantPanels(own, begin, end, to);
  for (std::int64_t panel = begin; panel < end; ++panel) {
    const std::int64_t first = panel * kPanel;
    const std::int64_t last = std::min(first + kPanel, band.end - band.begin);
    for (std::int64_t output = first; output < last; ++output) {
      PackFloats(own, output, band.format, static_cast<int>(output - first), row, to);
    }
    to += PanelBytes(band.format, own[0].shape[1]);
  }
}

void PackPanels(std::span<const TensorView> parts, std::int64_t begin, std::int64_t end, int index,
                Matrix* stack) {
  std::vector<float> row(stack->inputs);
  std::byte* const data = stack->data.data() + Size(index) * stack->stride();
  VisitBands(*stack, begin, end, [&](const MatrixBand& band, std::int64_t from, std::int64_t to) {
    const std::size_t before = Size(from) * PanelBytes(band.format, stack->inputs);
    PackBand(parts, band, from, to, row, data + band.offset + before);
  });
}

void ReadOutput(const Matrix& matrix, std::int64_t output, float* out) {
  FT_CHECK(output >= 0 && output < matrix.outputs, "output {} of {}", output, matrix.outputs);
  FT_CHECK(matrix.borrowed.empty(), "outputs of a borrowed matrix are not read one by one");
  const MatrixBand& band = *std::ranges::find_if(
      matrix.bands, [&](const MatrixBand& each) { return output < each.end; });
  const int lane = (output - band.begin) % kPanel;
  const std::byte* const panel =
      matrix.data.data() + band.offset +
      Size((output - band.begin) / kPanel) * PanelBytes(band.format, matrix.inputs);
  if (IsQuantized(band.format)) {
    ReadQuantOutput(band.format, panel, matrix.inputs, lane, out);
  } else if (band.format == WeightFormat::kBF16) {
    const auto* const from = reinterpret_cast<const BFloat16*>(panel) + std::ptrdiff_t{lane} * 2;
    for (std::int64_t i = 0; i < matrix.inputs; ++i) {
      out[i] = BFloat16ToFloat(from[i / 2 * 2 * kPanel + i % 2]);
    }
  } else {
    const float* const from = reinterpret_cast<const float*>(panel) + lane;
    for (std::int64_t i = 0; i < matrix.inputs; ++i) out[i] = from[i * kPanel];
  }
}

}  // namespace foretoken::cpu
