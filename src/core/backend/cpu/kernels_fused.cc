#define FT_ISA fused
#define FT_FUSED
#include "core/backend/cpu/vec_portable.h"
//
#include "core/backend/cpu/noise_impl.h"

namespace foretoken::cpu::FT_ISA {

const Kernels& Table() {
  static constexpr Kernels kTable = MakeTable<VectorDot<WideBf16Step>, VectorDot<F32Step>>("fused");
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA
