#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/llama.h"

namespace foretoken {

/// Times of a model's passes on its device: us[i * contexts.size() + j] microseconds with rows[i]
/// rows of one sequence behind a context of contexts[j] tokens.
struct PassTimes {
  std::vector<int> rows;
  std::vector<int> contexts;
  std::vector<double> us;
};

/// Measures medians of a few passes at every point, never falling with more rows; `rows` and
/// `contexts` ascending; contexts beyond the model's are left out. Stops at about `budget_ns`: the
/// largest contexts are then left out, then row counts that are no powers of two, then the largest;
/// never the first of either. Uses KV memory of its own.
PassTimes MeasurePassTimes(LlamaModel& model, std::span<const int> rows,
                           std::span<const int> contexts, std::int64_t budget_ns);

/// Microseconds that a pass takes longer for a row of another sequence than for a further row of
/// the same, behind `context` tokens each.
double MeasureSequenceUs(LlamaModel& model, int context);

}  // namespace foretoken
