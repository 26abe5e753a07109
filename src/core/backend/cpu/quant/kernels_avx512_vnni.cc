#if defined(__x86_64__)

#define FT_ISA avx512_vnni
#include "core/backend/cpu/quant/lanes_avx512.h"
//
#include "core/backend/cpu/quant/dots_vnni.h"
//
#include "core/backend/cpu/quant/product_impl.h"

namespace foretoken::cpu::FT_ISA {

const QuantKernels& QuantTable() {
  static constexpr QuantKernels kTable = MakeQuantTable<VectorProducts>("avx512_vnni", Quantize);
  return kTable;
}

const QuantKernels& FetchingQuantTable() {
  using Products = ProductsFetching<FetchesAhead::kAlways>;
  static constexpr QuantKernels kTable = MakeQuantTable<Products>("avx512_vnni", Quantize);
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
