#if defined(__x86_64__)

// The tile products' logic is tested with emulated tiles (int8_emulation_test.cc).

#define FT_ISA amx_int8
#include "core/backend/cpu/quant/lanes_avx512.h"
//
#include "core/backend/cpu/amx/hardware_tiles.h"
#include "core/backend/cpu/amx/int8_product_impl.h"

namespace foretoken::cpu::FT_ISA {

const QuantKernels& QuantTable() {
  using Products = TileProducts<HardwareTiles, avx512_vnni::FetchingQuantTable>;
  static constexpr QuantKernels kTable = MakeQuantTable<Products>("amx_int8", Products::Quantize);
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
