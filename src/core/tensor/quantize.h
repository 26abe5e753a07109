#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/weight_format.h"

namespace foretoken {

/// Whether StoreElements writes that format: all of them but IQ4_XS.
bool CanStore(WeightFormat format);

/// Writes `count` elements, whole blocks, in a format that can be stored: LoadElements the other
/// way round, as near as the format comes. Blocks of one scale and equal steps (Q8_0, Q4_0 ...) are
/// byte for byte what the formats' usual definition gives (the Python package `gguf` is what tests
/// compare with); for the others scales are searched, for the least square error. The same floats
/// always give the same bytes. A block with an infinite element or a NaN is NaN throughout, or
/// infinite in MXFP4, which has none.
void StoreElements(WeightFormat format, const float* values, std::int64_t count, std::byte* out);

}  // namespace foretoken
