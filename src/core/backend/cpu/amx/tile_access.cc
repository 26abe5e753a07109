#include "core/backend/cpu/amx/tile_access.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace foretoken {

#if defined(__x86_64__)

namespace {

// Bits of CPUID that say which parts of AMX there are; compilers differ in how they ask.
constexpr unsigned kBf16Bit = 1U << 22;
constexpr unsigned kTileBit = 1U << 24;
constexpr unsigned kInt8Bit = 1U << 25;

bool Has(unsigned bits) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bits) == bits;
}

// Linux hands out the 8 KB of tile state only to programs that ask.
bool RequestTiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool MayUseBf16Tiles() { return Has(kTileBit | kBf16Bit) && RequestTiles(); }
bool MayUseInt8Tiles() { return Has(kTileBit | kInt8Bit) && RequestTiles(); }

#else

bool MayUseBf16Tiles() { return false; }
bool MayUseInt8Tiles() { return false; }

#endif

}  // namespace foretoken
