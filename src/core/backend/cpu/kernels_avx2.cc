#if defined(__x86_64__)

#define FT_ISA avx2
#include "core/backend/cpu/vec_avx2.h"
//
#include "core/backend/cpu/noise_impl.h"

namespace foretoken::cpu::FT_ISA {

const Kernels& Table() {
  static constexpr Kernels kTable = MakeTable<VectorDot<WideBf16Step>, VectorDot<F32Step>>("avx2");
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
