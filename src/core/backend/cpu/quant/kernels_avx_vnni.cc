#if defined(__x86_64__)

#define FT_ISA avx_vnni
#include "core/backend/cpu/quant/lanes_avx2.h"

namespace foretoken::cpu::FT_ISA {
namespace {

FT_INLINE __m256i AddProducts(__m256i sums, __m256i codes, __m256i values) {
  return _mm256_dpbusd_avx_epi32(sums, codes, values);
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA

#include "core/backend/cpu/quant/dots_avx_vnni.h"
//
#include "core/backend/cpu/quant/product_impl.h"

namespace foretoken::cpu::FT_ISA {

const QuantKernels& QuantTable() {
  static constexpr QuantKernels kTable = MakeQuantTable<VectorProducts>("avx_vnni", Quantize);
  return kTable;
}

}  // namespace foretoken::cpu::FT_ISA

#endif
