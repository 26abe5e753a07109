#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>

#include "backend/cpu/cpu_backend.h"

namespace foretoken {
namespace {

#if defined(__x86_64__)

// Whether vdpbf16ps is slower than widening BF16 and two multiply-adds: one takes two cycles on
// Intel's processors (42 against 75 multiply-adds a nanosecond on Emerald Rapids whose tiles a
// hypervisor hides), one on Zen 4. Not measured at start: the choice decides the output's last
// bits.
bool DotProductIsSlow() { return __builtin_cpu_is("intel"); }

// Linux hands out the 8 KB of tile state only to programs that ask.
bool RequestTiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Whether the processor has tiles and their BF16 product; compilers differ in how they ask.
bool HasTiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBoth = 1U << 22 | 1U << 24;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBoth) == kBoth;
}

// A set counts only where the operating system saves its registers on a switch of threads.
std::vector<Isa> Detect() {
  __builtin_cpu_init();
  std::vector<Isa> isas = {Isa::kPortable};
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return isas;
  isas.push_back(Isa::kAvx2);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
    return isas;
  }
  isas.push_back(Isa::kAvx512);
  if (!__builtin_cpu_supports("avx512bf16")) return isas;
  isas.insert(isas.end() - (DotProductIsSlow() ? 1 : 0), Isa::kAvx512Bf16);
  if (HasTiles() && RequestTiles()) isas.push_back(Isa::kAmx);
  return isas;
}

#else

std::vector<Isa> Detect() { return {Isa::kPortable}; }

#endif

}  // namespace

std::vector<Isa> AvailableIsas() {
  static const std::vector<Isa> isas = Detect();
  return isas;
}

std::string_view IsaName(Isa isa) {
  constexpr std::string_view kNames[] = {"portable", "avx2", "avx512", "avx512_bf16", "amx"};
  return kNames[static_cast<int>(isa)];
}

const cpu::Kernels& KernelsFor(Isa isa) {
  const std::vector<Isa> isas = AvailableIsas();
  FT_CHECK(std::find(isas.begin(), isas.end(), isa) != isas.end(), "this machine has no {}",
           IsaName(isa));
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return cpu::avx2::Table();
    case Isa::kAvx512:
      return cpu::avx512::Table();
    case Isa::kAvx512Bf16:
      return cpu::avx512_bf16::Table();
    case Isa::kAmx:
      return cpu::amx::Table();
#endif
    default:
      return cpu::portable::Table();
  }
}

}  // namespace foretoken
