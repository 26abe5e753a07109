#pragma once

#include <span>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/cores.h"

namespace foretoken {

/// What reading costs on a set of cores, in GB/s (10^9 bytes).
struct ReadBandwidth {
  double one_core = 0;   ///< The first core alone.
  double all_cores = 0;  ///< All together.
};

/// Streams through 256 MiB a core, far beyond the caches, and takes the best of several passes.
/// Takes about a second. Pins the calling thread to the first core.
ReadBandwidth MeasureReadBandwidth(const CoreSet& cores);

/// The time of a matrix product over `rows` rows, and its ratio to that of one row.
struct MatMulCost {
  int rows = 0;
  double seconds = 0;
  double ratio = 0;
};

/// The row-cost curve of weights far larger than the caches (8 matrices of 8192 x 2048 in the
/// backend's precision): the median over several passes of each row count, taken in turns so that
/// a disturbance strikes them alike. Drives `backend`, so its owner thread must call.
std::vector<MatMulCost> MeasureMatMulCosts(Backend* backend, std::span<const int> row_counts);

}  // namespace foretoken
