#pragma once

#include <span>
#include <vector>

#include "core/backend/device.h"

namespace foretoken {

/// What the device's cores read together, in GB/s (10^9 bytes): they stream through 256 MiB each,
/// far beyond the caches, and the best of several passes counts. The owner thread must call.
double MeasureReadBandwidth(Device* device);

/// The time of a matrix product over `rows` rows.
struct MatMulCost {
  int rows = 0;
  double seconds = 0;
};

/// The row-cost curve of weights far larger than the caches (8 matrices of 8192 x 2048 in the
/// backend's precision): the median over several passes of each row count, taken in turns so that
/// a disturbance strikes them alike. Drives `backend`, so its owner thread must call.
std::vector<MatMulCost> MeasureMatMulCosts(Backend* backend, std::span<const int> row_counts);

}  // namespace foretoken
