#include "backend/cpu/products/packed_matrix.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/quant/packing.h"
#include "base/check.h"
#include "tensor/half.h"

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

// `row`: of the stacked parts.
void PackFloats(std::span<const TensorView> parts, std::int64_t row, WeightFormat format, int lane,
                std::vector<float>* scratch, std::byte* panel) {
  auto part = parts.begin();
  while (row >= part->shape[0]) row -= part++->shape[0];
  const auto inputs = static_cast<std::int64_t>(scratch->size());
  float* const values = scratch->data();
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
  return static_cast<std::size_t>(kPanel * PadToChunk(static_cast<int>(inputs))) * element;
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
    bytes += static_cast<std::size_t>(PanelsOf(band)) * PanelBytes(band.format, matrix.inputs);
  }
  matrix.data = Buffer(bytes * static_cast<std::size_t>(count));
  return matrix;
}

void PackPanels(std::span<const TensorView> parts, std::int64_t begin, std::int64_t end, int index,
                Matrix* stack) {
  std::vector<float> scratch(static_cast<std::size_t>(stack->inputs));
  std::byte* const data = stack->data.data() + static_cast<std::size_t>(index) * stack->stride();
  VisitBands(*stack, begin, end, [&](const MatrixBand& band, std::int64_t from, std::int64_t to) {
    const std::span<const TensorView> own = PartsOf(parts, band);
    const std::size_t panel_bytes = PanelBytes(band.format, stack->inputs);
    std::byte* packed = data + band.offset + static_cast<std::size_t>(from) * panel_bytes;
    if (IsQuantized(band.format)) return PackQuantPanels(own, from, to, packed);
    for (std::int64_t panel = from; panel < to; ++panel, packed += panel_bytes) {
      const std::int64_t first = panel * kPanel;
      const std::int64_t last = std::min(first + kPanel, band.end - band.begin);
      for (std::int64_t row = first; row < last; ++row) {
        PackFloats(own, row, band.format, static_cast<int>(row - first), &scratch, packed);
      }
    }
  });
}

void ReadOutput(const Matrix& matrix, std::int64_t output, float* out) {
  FT_CHECK(output >= 0 && output < matrix.outputs, "output {} of {}", output, matrix.outputs);
  const MatrixBand& band = *std::ranges::find_if(
      matrix.bands, [&](const MatrixBand& each) { return output < each.end; });
  const auto lane = static_cast<int>((output - band.begin) % kPanel);
  const std::byte* const panel = matrix.data.data() + band.offset +
                                 static_cast<std::size_t>((output - band.begin) / kPanel) *
                                     PanelBytes(band.format, matrix.inputs);
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
