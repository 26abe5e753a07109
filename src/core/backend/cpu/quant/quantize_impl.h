#pragma once

// Quantising inputs. Include after a lanes_*.h.

#include "core/backend/cpu/quant/block_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

void QuantizeInputs(const float* x, RowBlock* to) {
  to->scale = QuantizeBlock<kLargest8>(x, to->values);
  std::int32_t sums[2];
  SumHalves(to->values, sums);
  to->minus_halves[0] = -sums[0];
  to->minus_halves[1] = -sums[1];
  to->minus_sum = -sums[0] - sums[1];
}

void Quantize(const QuantizeTask& task) {
  const std::ptrdiff_t blocks = task.inputs / kInputBlock;
  for (int row = task.row_begin; row < task.row_end; ++row) {
    const int group = row / kRowGroup * kRowGroup;
    const int in_group = task.rows - group < kRowGroup ? task.rows - group : kRowGroup;
    const float* const x = task.x + row * std::ptrdiff_t{task.inputs};
    RowBlock* const to = task.to + group * blocks + (row - group);
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
      QuantizeInputs(x + b * kInputBlock, to + b * in_group);
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
