#if defined(__x86_64__)

// The tile kernels' logic is tested with emulated tiles (bf16_emulation_test.cc).

#define FT_ISA amx
#include "core/backend/cpu/vec_avx512.h"
//
#include "core/backend/cpu/amx/bf16_dot.h"
#include "core/backend/cpu/amx/hardware_tiles.h"
#include "core/backend/cpu/bf16_step.h"
#include "core/backend/cpu/noise_impl.h"

namespace foretoken::cpu::FT_ISA {

const Kernels& Table() {
  static constexpr Kernels kTable =
      MakeTable<TileDot<HardwareTiles, NativeBf16Step>, VectorDot<F32Step>>("amx");
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
