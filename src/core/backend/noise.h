#pragma once

#include <cstdint>

#include "base/numbers/philox.h"
#include "base/numbers/portable_math.h"

namespace foretoken {

/// The noisy score z / T + g that every backend ranks tokens by; z itself at T = 0, where `draw`
/// is not looked at. The Gumbel noise g = -log(-log(u)) is about -3.1 to 22.9. One expression in
/// double, so that every backend, on every machine, returns the same bits.
inline double NoisyScore(float logit, float temperature, std::uint32_t draw) {
  if (temperature == 0.0F) return logit;
  return static_cast<double>(logit) / static_cast<double>(temperature) -
         PortableLog(-PortableLog(UnitInterval(draw)));
}

}  // namespace foretoken
