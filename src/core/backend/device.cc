#include "core/backend/device.h"

#include <algorithm>

#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/quant/quant_isa.h"

namespace foretoken {

bool Device::Overlaps(const CoreSet& cores) const {
  return std::ranges::find_first_of(pool_.cores(), cores) != pool_.cores().end();
}

std::unique_ptr<Backend> Device::MakeBackend(Numerics numerics) {
  if (numerics.precision == Precision::kPortable) {
    return MakePortableCpuBackend(*PortableKernels().back(), *AvailableQuantKernels().back(),
                                  &pool_, numerics.kv);
  }
  return MakeCpuBackend(*AvailableKernels().back(), &pool_, numerics);
}

}  // namespace foretoken
