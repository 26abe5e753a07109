#include "model/pass_times.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/clock.h"

namespace foretoken {
namespace {

constexpr int kPasses = 5;

// A pass over `rows` consecutive positions from `context` on; what the KV holds does not matter.
void FillBatch(int rows, int context, const std::vector<std::int32_t>& blocks,
               ForwardBatch* batch) {
  batch->Clear();
  batch->block_tables.push_back(blocks.data());
  for (int i = 0; i < rows; ++i) {
    const std::int32_t position = context + i;
    batch->rows.push_back({.token = 0,
                           .place = {.position = position,
                                     .slot = position,
                                     .sequence = 0,
                                     .trunk_length = position + 1,
                                     .tail_begin = 0}});
  }
}

double MedianUs(LlamaModel& model, const ForwardBatch& batch, KvStore& kv) {
  std::array<std::int64_t, kPasses> times;
  model.Forward(batch, kv);
  for (std::int64_t& time : times) {
    const std::int64_t start = NowNs();
    model.Forward(batch, kv);
    time = NowNs() - start;
  }
  std::nth_element(times.begin(), times.begin() + kPasses / 2, times.end());
  return static_cast<double>(times[kPasses / 2]) / 1e3;
}

}  // namespace

PassTimes MeasurePassTimes(LlamaModel& model, std::span<const int> rows,
                           std::span<const int> contexts, std::int64_t budget_ns) {
  FT_CHECK(!rows.empty() && !contexts.empty());
  const int limit = model.config().max_positions - rows.back();
  const int longest = std::clamp(contexts.back(), 1, std::max(1, limit));
  const std::int64_t block_count = BlocksFor(longest + rows.back());
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(block_count));
  std::iota(blocks.begin(), blocks.end(), 0);
  KvStore kv = model.backend().AllocateKv(model.KvShapeFor(block_count));
  ForwardBatch batch;
  const std::int64_t deadline = NowNs() + budget_ns;

  std::vector<std::vector<double>> columns;  // [context][row]
  PassTimes times;
  for (const int context : contexts) {
    if (!columns.empty() && (context > limit || NowNs() > deadline)) break;
    std::vector<double> column;
    const std::size_t wanted = columns.empty() ? rows.size() : columns[0].size();
    for (std::size_t i = 0; i < wanted; ++i) {
      if (i > 0 && NowNs() > deadline) break;
      FillBatch(rows[i], std::min(context, longest), blocks, &batch);
      column.push_back(MedianUs(model, batch, kv));
    }
    if (!columns.empty() && column.size() < wanted) break;
    columns.push_back(std::move(column));
    times.contexts.push_back(context);
  }
  times.rows.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(columns[0].size()));
  for (std::size_t i = 0; i < times.rows.size(); ++i) {
    for (const auto& column : columns) times.us.push_back(column[i]);
  }
  return times;
}

}  // namespace foretoken
