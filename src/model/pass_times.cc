#include "model/pass_times.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "base/clock.h"

namespace foretoken {
namespace {

// Passes at a point: as many as take kPointNs, within these bounds. The median of few would follow
// what else the machine does.
constexpr int kLeastPasses = 3;
constexpr int kMostPasses = 25;
constexpr std::int64_t kPointNs = 6'000'000;

// A pass of `rows` consecutive positions of each of `sequences` sequences from `context` on; what
// the KV holds does not matter. Each sequence has blocks of its own.
void FillBatch(int sequences, int rows, int context, const std::vector<std::int32_t>& blocks,
               ForwardBatch* batch) {
  batch->Clear();
  const std::size_t own = blocks.size() / static_cast<std::size_t>(sequences);
  for (int s = 0; s < sequences; ++s) {
    batch->block_tables.push_back(blocks.data() + own * static_cast<std::size_t>(s));
    for (int i = 0; i < rows; ++i) {
      const std::int32_t position = context + i;
      const auto block = static_cast<std::size_t>(position / kBlockSize);
      batch->rows.push_back(
          {.token = 0,
           .place = {.position = position,
                     .slot = batch->block_tables[s][block] * kBlockSize + position % kBlockSize,
                     .sequence = s,
                     .trunk_length = position + 1,
                     .tail_begin = 0}});
    }
  }
}

double MedianUs(LlamaModel& model, const ForwardBatch& batch, KvStore& kv) {
  std::array<std::int64_t, kMostPasses> times;
  std::int64_t spent = 0;
  int passes = 0;
  model.Forward(batch, kv);
  while (passes < kLeastPasses || (passes < kMostPasses && spent < kPointNs)) {
    const std::int64_t start = NowNs();
    model.Forward(batch, kv);
    times[passes] = NowNs() - start;
    spent += times[passes++];
  }
  const auto median = times.begin() + passes / 2;
  std::nth_element(times.begin(), median, times.begin() + passes);
  return static_cast<double>(*median) / 1e3;
}

// Times that never fall from one row count to the next: the mean of each stretch that falls (pool
// adjacent violators). What falls is noise, a pass over more rows does more work.
void MakeAscending(std::vector<double>* us) {
  struct Stretch {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Stretch> stretches;
  for (const double value : *us) {
    stretches.push_back({value, 1});
    while (stretches.size() > 1 &&
           stretches[stretches.size() - 2].mean() > stretches.back().mean()) {
      const Stretch last = stretches.back();
      stretches.pop_back();
      stretches.back().sum += last.sum;
      stretches.back().count += last.count;
    }
  }
  us->clear();
  for (const Stretch& stretch : stretches) us->insert(us->end(), stretch.count, stretch.mean());
}

// Powers of two first, which say most where time allows no more.
std::vector<std::size_t> OrderOfRows(std::span<const int> rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
    return std::has_single_bit(static_cast<unsigned>(rows[i]));
  });
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
      FillBatch(1, rows[i], std::min(context, longest), blocks, &batch);
      column[i] = MedianUs(model, batch, kv);
    }
    if (!first && done < measured.size()) break;
    measured.resize(done);
    columns.push_back(std::move(column));
    times.contexts.push_back(context);
  }
  std::ranges::sort(measured);
  for (const std::size_t i : measured) times.rows.push_back(rows[i]);
  for (auto& column : columns) {
    std::vector<double> us;
    for (const std::size_t i : measured) us.push_back(column[i]);
    MakeAscending(&us);
    column = std::move(us);
  }
  for (std::size_t i = 0; i < measured.size(); ++i) {
    for (const auto& column : columns) times.us.push_back(column[i]);
  }
  return times;
}

double MeasureSequenceUs(LlamaModel& model, int context) {
  constexpr int kSequences = 8;
  context = std::clamp(context, 1, std::max(1, model.config().max_positions - kSequences));
  const std::int64_t block_count = kSequences * BlocksFor(context + kSequences);
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(block_count));
  std::iota(blocks.begin(), blocks.end(), 0);
  KvStore kv = model.backend().AllocateKv(model.KvShapeFor(block_count));
  ForwardBatch batch;
  FillBatch(1, kSequences, context, blocks, &batch);
  const double together = MedianUs(model, batch, kv);
  FillBatch(kSequences, 1, context, blocks, &batch);
  const double apart = MedianUs(model, batch, kv);
  return std::max(0.0, (apart - together) / (kSequences - 1));
}

}  // namespace foretoken
