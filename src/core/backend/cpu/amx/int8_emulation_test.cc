#define FT_ISA amx_int8_emulated
#include "core/backend/cpu/quant/lanes_portable.h"
//
#include "core/backend/cpu/amx/emulated_tiles_testing.h"
#include "core/backend/cpu/amx/int8_product_impl.h"
#include "core/backend/cpu/quant/emulated_sets_testing.h"

namespace foretoken::cpu::FT_ISA {

const QuantKernels& QuantTable() {
  using Products = TileProducts<EmulatedTiles, portable::QuantTable>;
  static constexpr QuantKernels kTable =
      MakeQuantTable<Products>("amx_int8_emulated", Products::Quantize);
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA
