#include "core/backend/cpu/quant/quant_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/backend/cpu/amx/tile_access.h"

namespace foretoken {
namespace {

#if defined(__x86_64__)

// Compilers differ in how they ask.
bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1U << 4) != 0;
}

#endif

// A set counts only where the operating system saves its registers on a switch of threads.
std::vector<const cpu::QuantKernels*> DetectQuantKernels() {
  std::vector<const cpu::QuantKernels*> kernels = {&cpu::portable::QuantTable()};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return kernels;
  kernels.push_back(&cpu::avx2::QuantTable());
  if (HasAvxVnni()) kernels.push_back(&cpu::avx_vnni::QuantTable());
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
    return kernels;
  }
  kernels.push_back(&cpu::avx512::QuantTable());
  if (!__builtin_cpu_supports("avx512vnni")) return kernels;
  // Told apart by vendor, as for BF16: Zen 4 is faster at one row where it fetches by itself.
  kernels.push_back(__builtin_cpu_is("intel") ? &cpu::avx512_vnni::FetchingQuantTable()
                                              : &cpu::avx512_vnni::QuantTable());
  if (MayUseInt8Tiles()) kernels.push_back(&cpu::amx_int8::QuantTable());
#endif
  return kernels;
}

}  // namespace

const std::vector<const cpu::QuantKernels*>& AvailableQuantKernels() {
  static const std::vector<const cpu::QuantKernels*> kernels = DetectQuantKernels();
  return kernels;
}

}  // namespace foretoken
