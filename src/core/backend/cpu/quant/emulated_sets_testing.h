#pragma once

#include "core/backend/cpu/quant/quant_kernels.h"

// Kernels of sets that few machines have, with the instructions that make them emulated: their
// logic runs anywhere.

namespace foretoken::cpu::amx_int8_emulated {
const QuantKernels& QuantTable();
}

#if defined(__x86_64__)
namespace foretoken::cpu::avx_vnni_emulated {
/// For machines with AVX2.
const QuantKernels& QuantTable();
}  // namespace foretoken::cpu::avx_vnni_emulated
#endif
