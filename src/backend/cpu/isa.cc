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

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers Cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool Bit(unsigned word, int bit) { return ((word >> bit) & 1U) != 0; }

// Which register states the operating system saves on a switch of threads.
std::uint64_t SavedStates() {
  if (!Bit(Cpuid(1, 0).c, 27)) return 0;
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

// Whether vdpbf16ps is slower than widening BF16 and two multiply-adds: one takes two cycles on
// Intel's processors (42 against 75 multiply-adds a nanosecond on Emerald Rapids whose tiles a
// hypervisor hides), one on Zen 4. Not measured at start: the choice decides the output's last
// bits.
bool DotProductIsSlow() {
  const Registers vendor = Cpuid(0, 0);
  return vendor.b == 0x756E6547 && vendor.d == 0x49656E69 && vendor.c == 0x6C65746E;  // Intel
}

// Linux hands out the 8 KB of tile state only to programs that ask.
bool RequestTiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::vector<Isa> Detect() {
  std::vector<Isa> isas = {Isa::kPortable};
  constexpr std::uint64_t kYmm = 0x6;
  constexpr std::uint64_t kZmm = 0xE6;
  constexpr std::uint64_t kTiles = 0x60000;
  const std::uint64_t saved = SavedStates();
  const Registers basic = Cpuid(1, 0);
  const Registers extended = Cpuid(7, 0);
  const bool avx2 = Bit(basic.c, 12) && Bit(extended.b, 5) && (saved & kYmm) == kYmm;
  if (!avx2) return isas;
  isas.push_back(Isa::kAvx2);
  const bool avx512 = Bit(extended.b, 16) && Bit(extended.b, 17) && Bit(extended.b, 30) &&
                      Bit(extended.b, 31) && (saved & kZmm) == kZmm;
  if (!avx512) return isas;
  isas.push_back(Isa::kAvx512);
  if (!Bit(Cpuid(7, 1).a, 5)) return isas;
  isas.insert(isas.end() - (DotProductIsSlow() ? 1 : 0), Isa::kAvx512Bf16);
  const bool amx = Bit(extended.d, 22) && Bit(extended.d, 24) && (saved & kTiles) == kTiles;
  if (amx && RequestTiles()) isas.push_back(Isa::kAmx);
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
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
    case Isa::kAmx:
      return "amx";
  }
  FT_CHECK(false, "instruction set {}", static_cast<int>(isa));
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

std::unique_ptr<Backend> MakeCpuBackend(const CpuBackendOptions& options) {
  const std::vector<Isa> isas = AvailableIsas();
  FT_CHECK(std::find(isas.begin(), isas.end(), options.isa) != isas.end(), "this machine has no {}",
           IsaName(options.isa));
  return MakeCpuBackend(KernelsFor(options.isa), options.pool, options.precision);
}

}  // namespace foretoken
