#if defined(__x86_64__)

// The tile kernels' logic is tested with emulated tiles (amx_emulation_test.cc).

#define FT_ISA amx
#include "backend/cpu/vec_avx512.h"
//
#include "backend/cpu/amx_dot.h"
#include "backend/cpu/bf16_step.h"
#include "backend/cpu/noise_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// The processor's tiles. Instructions name tiles as immediates, hence the template arguments; they
// are written out because the compiler's macros neither take those nor tell it that memory is read.
struct HardwareTiles {
  static FT_INLINE void Configure(const TileRows& rows) {
    struct alignas(64) Config {
      std::uint8_t palette;
      std::uint8_t start_row;
      std::uint8_t reserved[14];
      std::uint16_t column_bytes[16];
      std::uint8_t rows[16];
    };
    static_assert(sizeof(Config) == 64);
    Config config = {};
    config.palette = 1;
    for (int i = 0; i < 8; ++i) {
      config.column_bytes[i] = 64;
      config.rows[i] = rows.rows[i];
    }
    _tile_loadconfig(&config);
  }
  static FT_INLINE void Release() { _tile_release(); }
  template <int kTile>
  static FT_INLINE void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  static FT_INLINE void Load(const void* from, std::size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static FT_INLINE void Store(void* to, std::size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kSum, int kInputs, int kWeights>
  static FT_INLINE void Multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
                 :
                 : "i"(kSum), "i"(kInputs), "i"(kWeights));
  }
};

}  // namespace

const Kernels& Table() {
  static constexpr Kernels kTable =
      MakeTable<TileDot<HardwareTiles, NativeBf16Step>, VectorDot<F32Step>>("amx");
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
