#include "core/backend/cpu/amx/tile_access.h"
#include "core/backend/cpu/cpu_backend.h"

namespace foretoken {
namespace {

#if defined(__x86_64__)

// Whether vdpbf16ps is slower than widening BF16 and two multiply-adds: one takes two cycles on
// Intel's processors (42 against 75 multiply-adds a nanosecond on Emerald Rapids whose tiles a
// hypervisor hides), one on Zen 4. Not measured at start: the choice decides the output's last
// bits.
bool DotProductIsSlow() { return __builtin_cpu_is("intel"); }

// A set counts only where the operating system saves its registers on a switch of threads.
std::vector<const cpu::Kernels*> DetectKernels() {
  __builtin_cpu_init();
  std::vector<const cpu::Kernels*> kernels = {&cpu::portable::Table()};
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return kernels;
  kernels.push_back(&cpu::avx2::Table());
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
    return kernels;
  }
  kernels.push_back(&cpu::avx512::Table());
  if (!__builtin_cpu_supports("avx512bf16")) return kernels;
  kernels.insert(kernels.end() - (DotProductIsSlow() ? 1 : 0), &cpu::avx512_bf16::Table());
  if (MayUseBf16Tiles()) kernels.push_back(&cpu::amx::Table());
  return kernels;
}

#else

std::vector<const cpu::Kernels*> DetectKernels() { return {&cpu::portable::Table()}; }

#endif

}  // namespace

const std::vector<const cpu::Kernels*>& PortableKernels() {
  static const std::vector<const cpu::Kernels*> kernels = [] {
    std::vector<const cpu::Kernels*> found = {&cpu::fused::Table()};
#if defined(__x86_64__)
    for (const cpu::Kernels* each : AvailableKernels()) {
      const bool portable = each == &cpu::avx2::Table() || each == &cpu::avx512::Table();
      if (portable) found.push_back(each);
    }
#endif
    return found;
  }();
  return kernels;
}

const std::vector<const cpu::Kernels*>& AvailableKernels() {
  static const std::vector<const cpu::Kernels*> kernels = DetectKernels();
  return kernels;
}

}  // namespace foretoken
