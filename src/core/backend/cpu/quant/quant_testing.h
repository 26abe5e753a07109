#pragma once

#include <vector>

#include "core/backend/cpu/quant/emulated_sets_testing.h"
#include "core/backend/cpu/quant/quant_isa.h"

namespace foretoken {

/// The kernels for quantised weights that this machine can run, and those of sets that it may lack,
/// emulated.
inline std::vector<const cpu::QuantKernels*> TestedQuantKernels() {
  std::vector<const cpu::QuantKernels*> kernels = AvailableQuantKernels();
  kernels.push_back(&cpu::amx_int8_emulated::QuantTable());
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    kernels.push_back(&cpu::avx_vnni_emulated::QuantTable());
  }
#endif
  return kernels;
}

}  // namespace foretoken
