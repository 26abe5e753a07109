#include "core/backend/cpu/amx/bf16_emulation_testing.h"

#define FT_ISA amx_emulated
#include "core/backend/cpu/vec_portable.h"
//
#include "core/backend/cpu/dot.h"
//
#include "core/backend/cpu/amx/bf16_dot.h"
#include "core/backend/cpu/amx/emulated_tiles_testing.h"
//
#include "core/backend/cpu/kernels_impl.h"
//
#include "core/backend/cpu/attention/attention_impl.h"
//
#include "core/backend/cpu/noise_impl.h"

namespace foretoken::cpu::amx_emulated {
namespace {

// Inputs rounded to BF16 and kept so, as the tile kernels want them.
struct EmulatedStep {
  using Input = std::uint16_t;
  static constexpr int kInputs = 2;
  static void StoreInputs(std::uint16_t* to, Vec low, Vec high) {
    float rounded[kChunk];
    Store(rounded, RoundToBf16(low));
    Store(rounded + 16, RoundToBf16(high));
    for (int i = 0; i < kChunk; ++i) to[i] = static_cast<std::uint16_t>(Bf16Bits(rounded[i]));
  }
  static Vec StoreAndAdd(std::uint16_t* to, Vec low, Vec high, Vec sums) {
    StoreInputs(to, low, high);
    return Add(sums, Add(RoundToBf16(low), RoundToBf16(high)));
  }
};

}  // namespace

const Kernels& Table() {
  static constexpr Kernels kTable =
      MakeTable<TileDot<EmulatedTiles, EmulatedStep>, VectorDot<F32Step>>("amx_emulated");
  return kTable;
}

}  // namespace foretoken::cpu::amx_emulated
