#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/cpu/kernels.h"

// Matrices as kernels read them: panels of kPanel outputs, band after band. A panel of a quantised
// band is laid out as core/backend/cpu/quant/layout.h says, one of floats as MatMulTask does.

namespace foretoken::cpu {

/// Bytes of a panel.
std::size_t PanelBytes(WeightFormat format, std::int64_t inputs);

/// Panels of a band: the last of them may be a part of one.
constexpr std::int64_t PanelsOf(const MatrixBand& band) {
  return (band.end - band.begin + kPanel - 1) / kPanel;
}
/// Panels of all bands of one matrix.
std::int64_t PanelsOf(const Matrix& matrix);

/// A stack of `count` matrices with room for their weights, each band as `stored_as` makes of its
/// format.
Matrix MakeMatrix(std::span<const TensorView> parts, int count,
                  WeightFormat (*stored_as)(WeightFormat));

/// The same without room: a stack of `count` matrices that borrows `parts` [count, parts of each].
Matrix BorrowMatrix(std::vector<TensorView> parts, int count,
                    WeightFormat (*stored_as)(WeightFormat));

/// Panel `panel`, counted over all bands, of matrix `index` of a stack; null where there is none.
const std::byte* PanelAt(const Matrix& stack, int index, std::int64_t panel);

/// Packs panels [begin, end) of a band of the matrix that `parts` make. `row` has room for the
/// weights of an output. What lies behind the inputs and outputs of a panel is left as it is.
void PackBand(std::span<const TensorView> parts, const MatrixBand& band, std::int64_t begin,
              std::int64_t end, std::span<float> row, std::byte* to);

/// Packs panels [begin, end), counted over all bands, of matrix `index` of a stack.
void PackPanels(std::span<const TensorView> parts, std::int64_t begin, std::int64_t end, int index,
                Matrix* stack);

/// The weights of one output.
void ReadOutput(const Matrix& matrix, std::int64_t output, float* out);

/// Calls visit(band, begin, end) with the panels of each band among panels [begin, end) of all,
/// counted from the band's first.
template <typename Visit>
void VisitBands(const Matrix& matrix, std::int64_t begin, std::int64_t end, const Visit& visit) {
  std::int64_t first = 0;
  for (const MatrixBand& band : matrix.bands) {
    const std::int64_t panels = PanelsOf(band);
    const std::int64_t from = begin > first ? begin - first : 0;
    const std::int64_t to = end - first < panels ? end - first : panels;
    if (from < to) visit(band, from, to);
    first += panels;
  }
}

}  // namespace foretoken::cpu
