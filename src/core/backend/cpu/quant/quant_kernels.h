#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/numbers/integers.h"
#include "core/tensor/weight_format.h"

// What the translation units of the instruction sets share for products with quantised weights:
// plain structs and constants only, as in core/backend/cpu/kernels.h.

namespace foretoken::cpu {

/// Inputs of a row that are quantised together.
inline constexpr int kInputBlock = 32;
/// Rows whose blocks lie side by side.
inline constexpr int kRowGroup = 16;

/// A block of a row of inputs: value j stands for scale * values[j].
struct RowBlock {
  std::int8_t values[kInputBlock];
  float scale;
  std::int32_t minus_halves[2];  ///< The negative sum of the first and of the last 16 values.
  std::int32_t minus_sum;        ///< The negative sum of all values.
};

constexpr std::size_t RowBlocks(int rows, int inputs) {
  return Size(rows) * Size(inputs / kInputBlock);
}

/// Quantises rows [row_begin, row_end) of x [rows, inputs] into `to`, RowBlocks(rows, inputs) of
/// them: [rows / kRowGroup][inputs / kInputBlock][kRowGroup], fewer rows in the last group.
struct QuantizeTask {
  const float* x;
  int rows;
  int inputs;
  int row_begin;
  int row_end;
  RowBlock* to;
};

/// y [rows, outputs] (+)= x * weights^T for panels [panel_begin, panel_end) of kPanel outputs, as
/// docs/develop/arithmetic.md defines it. `inputs` is a multiple of the format's block.
struct QuantProductTask {
  const std::byte* weights;  ///< Panels as PackQuantPanels writes them.
  std::size_t panel_bytes;   ///< QuantPanelBytes.
  const RowBlock* x;         ///< As `quantize` writes them.
  float* y;
  std::ptrdiff_t y_stride;  ///< From a row of y to the next.
  int rows;
  int inputs;
  int outputs;
  int panel_begin;
  int panel_end;
  bool add;
  const std::byte* next = nullptr;  ///< What is read after these panels, if that is known.
};

/// What one instruction set offers. All of them give the same bits.
struct QuantKernels {
  const char* name;  ///< "portable", "avx2", "avx_vnni", "avx512", "avx512_vnni", "amx_int8".
  void (*quantize)(const QuantizeTask& task);
  /// By WeightFormat; null for the formats that are not quantised.
  std::array<void (*)(const QuantProductTask& task), kWeightFormats> product;
};

namespace portable {
const QuantKernels& QuantTable();
}
#if defined(__x86_64__)
namespace avx2 {
const QuantKernels& QuantTable();
}
namespace avx_vnni {
const QuantKernels& QuantTable();
}
namespace avx512 {
const QuantKernels& QuantTable();
}
namespace avx512_vnni {
const QuantKernels& QuantTable();
/// For processors that do not run far ahead of one row by themselves: weights are always fetched.
const QuantKernels& FetchingQuantTable();
}  // namespace avx512_vnni
namespace amx_int8 {
const QuantKernels& QuantTable();
}
#endif

}  // namespace foretoken::cpu
