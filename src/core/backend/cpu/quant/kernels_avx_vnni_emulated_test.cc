#if defined(__x86_64__)

// The kernels of AVX-VNNI with its one instruction emulated by those of AVX2.

#define FT_ISA avx_vnni_emulated
#include "core/backend/cpu/quant/emulated_sets_testing.h"
#include "core/backend/cpu/quant/lanes_avx2.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// Multiplies the even and the odd bytes of each lane as 16-bit numbers, whose products are exact.
FT_INLINE __m256i AddProducts(__m256i sums, __m256i codes, __m256i values) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(0xFF)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(values, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(codes, 8), _mm256_srai_epi16(values, 8));
  return _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA

#include "core/backend/cpu/quant/dots_avx_vnni.h"
//
#include "core/backend/cpu/quant/product_impl.h"

namespace foretoken::cpu::FT_ISA {

const QuantKernels& QuantTable() {
  static constexpr QuantKernels kTable =
      MakeQuantTable<VectorProducts>("avx_vnni_emulated", Quantize);
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
