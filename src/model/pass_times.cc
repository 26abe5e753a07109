#include "model/pass_times.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "base/clock.h"

namespace foretoken {
namespace {

// Passes at a point: fewer where one takes long, and then is about as long every time.
constexpr int kPasses = 5;
constexpr int kSlowPasses = 3;
constexpr std::int64_t kSlowNs = 1'000'000;

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
  int passes = kPasses;
  for (int i = 0; i < passes; ++i) {
    const std::int64_t start = NowNs();
    model.Forward(batch, kv);
    times[i] = NowNs() - start;
    if (times[0] > kSlowNs) passes = kSlowPasses;
  }
  const auto median = times.begin() + passes / 2;
  std::nth_element(times.begin(), median, times.begin() + passes);
  return static_cast<double>(*median) / 1e3;
}

// Powers of two first, which say most where time allows no more.
std::vector<std::size_t> OrderOfRows(std::span<const int> rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_partition(
      order, [&](std::size_t i) { return std::has_single_bit(static_cast<unsigned>(rows[i])); });
  return order;
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

  std::vector<std::size_t> measured = OrderOfRows(rows);
  std::vector<std::vector<double>> columns;  // [context][row]
  PassTimes times;
  for (const int context : contexts) {
    const bool first = columns.empty();
    if (!first && (context > limit || NowNs() > deadline)) break;
    std::vector<double> column(rows.size());
    std::size_t done = 0;
    while (done < measured.size() && (done == 0 || NowNs() <= deadline)) {
      const std::size_t i = measured[done++];
      FillBatch(rows[i], std::min(context, longest), blocks, &batch);
      column[i] = MedianUs(model, batch, kv);
    }
    if (!first && done < measured.size()) break;
    measured.resize(done);
    columns.push_back(std::move(column));
    times.contexts.push_back(context);
  }
  std::ranges::sort(measured);
  for (const std::size_t i : measured) {
    times.rows.push_back(rows[i]);
    for (const auto& column : columns) times.us.push_back(column[i]);
  }
  return times;
}

}  // namespace foretoken
