#pragma once

#include <vector>

#include "core/backend/cpu/quant/quant_kernels.h"

namespace foretoken {

/// The kernels for quantised weights that this machine can run, the fastest last; all give the same
/// bits.
const std::vector<const cpu::QuantKernels*>& AvailableQuantKernels();

}  // namespace foretoken
