#include "backend/cpu/quant/quant_isa.h"

namespace foretoken {
namespace {

// A set counts only where the operating system saves its registers on a switch of threads.
std::vector<const cpu::QuantKernels*> Detect() {
  std::vector<const cpu::QuantKernels*> kernels = {&cpu::portable::QuantTable()};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return kernels;
  kernels.push_back(&cpu::avx2::QuantTable());
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
    return kernels;
  }
  kernels.push_back(&cpu::avx512::QuantTable());
  if (__builtin_cpu_supports("avx512vnni")) kernels.push_back(&cpu::avx512_vnni::QuantTable());
#endif
  return kernels;
}

}  // namespace

const std::vector<const cpu::QuantKernels*>& AvailableQuantKernels() {
  static const std::vector<const cpu::QuantKernels*> kernels = Detect();
  return kernels;
}

}  // namespace foretoken
