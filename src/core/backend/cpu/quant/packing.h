#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/cpu/kernels.h"
#include "core/tensor/tensor_view.h"

namespace foretoken::cpu {

/// Bytes of a packed panel of kPanel outputs.
std::size_t QuantPanelBytes(WeightFormat format, std::int64_t inputs);

/// The blocks of the outputs of a panel in the file's layout; null: an output of zeros, which the
/// last panel of a matrix may have.
using PanelRows = std::array<const std::byte*, kPanel>;

/// Packs a panel as layout.h describes it, into bytes that are zero where outputs are missing.
/// `inputs` is a multiple of the format's block.
void PackQuantPanel(WeightFormat format, const PanelRows& rows, std::int64_t inputs, std::byte* to);

/// The same for panels [begin, end) of matrices stacked by rows, [outputs_i, inputs] of one format:
/// panel `begin` is written to `to`.
void PackQuantPanels(std::span<const TensorView> parts, std::int64_t begin, std::int64_t end,
                     std::byte* to);

/// The weights of one output of a packed panel as floats, exactly what Dequantize gives.
void ReadQuantOutput(WeightFormat format, const std::byte* panel, std::int64_t inputs, int output,
                     float* out);

}  // namespace foretoken::cpu
