#if defined(__x86_64__)

#define FT_ISA avx512_bf16
#include "core/backend/cpu/vec_avx512.h"
//
#include "core/backend/cpu/bf16_step.h"
#include "core/backend/cpu/noise_impl.h"

namespace foretoken::cpu::FT_ISA {

const Kernels& Table() {
  static constexpr Kernels kTable =
      MakeTable<VectorDot<NativeBf16Step, NativeBf16Tiles>, VectorDot<F32Step>>("avx512_bf16");
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
