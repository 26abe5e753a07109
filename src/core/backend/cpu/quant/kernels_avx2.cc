#if defined(__x86_64__)

#define FT_ISA avx2
#include "core/backend/cpu/quant/lanes_avx2.h"
//
#include "core/backend/cpu/quant/dots_avx2.h"
//
#include "core/backend/cpu/quant/product_impl.h"

namespace foretoken::cpu::FT_ISA {

const QuantKernels& QuantTable() {
  static constexpr QuantKernels kTable = MakeQuantTable<VectorProducts>("avx2", Quantize);
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
