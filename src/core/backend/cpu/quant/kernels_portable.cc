#define FT_ISA portable
#include "core/backend/cpu/quant/lanes_portable.h"
//
#include "core/backend/cpu/quant/dots_portable.h"
//
#include "core/backend/cpu/quant/product_impl.h"

namespace foretoken::cpu::FT_ISA {

const QuantKernels& QuantTable() {
  static constexpr QuantKernels kTable = MakeQuantTable<VectorProducts>("portable", Quantize);
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA
