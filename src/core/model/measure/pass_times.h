#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/device.h"
#include "core/model/model.h"

namespace foretoken {

/// Times of a model's passes on its device: us[i * contexts.size() + j] microseconds with rows[i]
/// rows of one sequence behind a context of contexts[j] tokens.
struct PassTimes {
  std::vector<int> rows;
  std::vector<int> contexts;
  std::vector<double> us;
};

/// Passes of a model over rows of made-up sequences, one at a time, to see how long they take.
/// Every row of every pass has another token, as in a text: where rows choose experts, they choose
/// different ones, and a pass finds few of them in caches. Uses KV memory of its own. Not
/// thread-safe.
class PassProbe {
 public:
  /// For passes of up to `rows` rows of each of `sequences` sequences behind contexts of up to
  /// `context` tokens (fewer where the model has less).
  PassProbe(Model* model, int sequences, int rows, int context);

  /// The next passes have so many consecutive rows of each sequence, behind so many tokens; in
  /// blocks, where the model has them (ParallelSpec).
  void Set(int rows, int context);
  /// Microseconds of one pass. The n-th one of a probe has the same tokens in each probe of as many
  /// rows.
  double Us();

  int longest_context() const { return longest_; }

 private:
  Model* model_;
  int sequences_;
  int longest_;
  std::int32_t blocks_of_sequence_;
  std::vector<std::int32_t> blocks_;
  KvStore kv_;
  ForwardBatch batch_;
  std::uint32_t tokens_ = 0;  // So many were drawn.
};

/// Measures means of a few passes at every point, never falling with more rows and never much
/// longer than passes over parts of them; `rows` and `contexts` ascending; contexts beyond the
/// model's are left out. Stops at about `budget_ns`: the largest contexts are then left out, then
/// row counts that are no powers of two (first those that lie between two of nearly the same time),
/// then the largest; never the first of either. What is left is measured again while there is time,
/// up to `sweeps` times, and drifts of the machine's speed are taken out.
PassTimes MeasurePassTimes(Model& model, std::span<const int> rows, std::span<const int> contexts,
                           std::int64_t budget_ns, int sweeps = 1);

/// Microseconds that a pass takes longer for a row of another sequence than for a further row of
/// the same, per token of context, measured behind `context` tokens each (fewer where the model has
/// less).
double MeasureSequenceTokenUs(Model& model, int context);

/// A model and its device.
struct PassWorker {
  Model* model;
  Device* device;
};

/// How many times as long passes take while the other model's device works too; at least 1.
struct Contention {
  double first = 1;
  double second = 1;
};

/// Measures it with passes of a few rows, alone and together in turns, in about 300 ms times
/// `repeats`; 1 where one takes longer than 20 ms, which would hold up the start for seconds. Both
/// devices must be idle.
Contention MeasureContention(const PassWorker& first, const PassWorker& second, int repeats = 1);

}  // namespace foretoken
