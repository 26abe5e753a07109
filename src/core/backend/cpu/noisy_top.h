#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/cpu/kernels.h"

namespace foretoken::cpu {

/// Backend::NoisyTop by scans of `kernels`, which look closely at those tokens alone that may be
/// among the best. `hits` is room that is used again.
std::size_t NoisyTop(const Kernels& kernels, Logits logits, int vocabulary, float temperature,
                     NoiseKey noise, std::span<Candidate> best, std::vector<NoiseHit>* hits);

}  // namespace foretoken::cpu
