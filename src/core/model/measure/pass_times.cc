#include "core/model/measure/pass_times.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

// A visit to a point begins with passes that do not count. After passes over eight rows the first
// over one takes 1.5 times the tenth (5 ms later, where 10 MB of weights lie in a cache that others
// share): those of plain decoding would seem a fifth slower than they are. A pass so long that the
// caches hardly show counts in any case.
constexpr std::int64_t kWarmNs = 6'000'000;
constexpr double kLongNs = 3'000'000;
// Then it measures so long, within bounds of passes; two of passes that take long.
constexpr std::int64_t kVisitNs = 6'000'000;
constexpr std::int64_t kLongVisitNs = 100'000'000;
constexpr std::size_t kLeastPasses = 3;
constexpr std::size_t kMostPasses = 25;
// A pass that takes more medians than this was held up by something else and counts as so many.
constexpr double kOutlier = 1.5;
constexpr int kPairs = 25;  // Where two kinds of passes are compared.

// Token `index` of a text of no meaning.
Token TokenOfText(std::uint32_t index, int vocabulary) {
  std::uint32_t x = (index + 1) * 0x9E3779B9U;
  x = (x ^ x >> 16) * 0x85EBCA6BU;
  x = (x ^ x >> 13) * 0xC2B2AE35U;
  return static_cast<Token>((x ^ x >> 16) % static_cast<std::uint32_t>(vocabulary));
}

double Median(std::span<double> times) {
  const auto half = static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), times.begin() + half, times.end());
  return times[half];
}

// What decides how many passes fit into a second is the mean, and that of short passes lies 4 %
// above their median here; but a hiccup of 4 ms must not make a visit's passes a third longer.
double CappedMean(std::span<double> times) {
  const double most = kOutlier * Median(times);
  double sum = 0;
  for (const double us : times) sum += std::min(us, most);
  return sum / static_cast<double>(times.size());
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

// No row count costs more than passes over parts of it would. A count that does was measured in a
// slow moment, which long passes, seen twice, do not show by themselves (64 rows took 2.9 times 32
// once, and passes of 112 seemed half as long again). Where the parts were measured in a fast
// moment this makes the whole seem cheaper than it is, which the first passes over it correct; what
// seems too expensive is never used and never corrected. (With 10 % more allowed, 64 rows often
// seemed to take 2.16 times 32, in truth 1.91, and SSD stayed with K = 1 where K = 3 was 5 %
// faster.) `us` ascends, and does so afterwards.
void CapAtParts(std::span<const int> rows, std::vector<double>* us) {
  for (std::size_t i = 1; i < us->size(); ++i) {
    for (std::size_t part = 0; part < i; ++part) {
      const int passes = (rows[i] + rows[part] - 1) / rows[part];
      (*us)[i] = std::min((*us)[i], passes * (*us)[part]);
    }
  }
}

// The row count to measure next, where `us` is 0 for those that were not: a power of two, then the
// one about which least is known, between neighbours whose times differ most. (In their order, time
// ran out on 135M parameters after rows 3, 5, 6, 7 and 9, all of which cost the same, and what was
// believed of 28 rows came from 17 and 32.)
std::size_t NextToMeasure(std::span<const int> rows, std::span<const double> us) {
  const int count = rows.size();
  int best = -1;
  double best_growth = 0;
  int best_skew = 0;  // How far from the middle between its neighbours.
  for (int i = 0; i < count; ++i) {
    if (us[i] > 0) continue;
    if (std::has_single_bit(static_cast<unsigned>(rows[i]))) return i;
    int low = i - 1;
    while (low >= 0 && us[low] == 0) --low;
    int high = i + 1;
    while (high < count && us[high] == 0) ++high;
    const bool between = low >= 0 && high < count;
    const double growth = between ? us[high] / us[low] : std::numeric_limits<double>::infinity();
    const int skew = between ? std::abs(rows[low] + rows[high] - 2 * rows[i]) : 0;
    if (best >= 0 && (growth < best_growth || (growth == best_growth && skew >= best_skew))) {
      continue;
    }
    best = i;
    best_growth = growth;
    best_skew = skew;
  }
  FT_CHECK(best >= 0, "all of {} are measured", rows.size());
  return best;
}

// The usual time of each point from sweeps over all of them. A sweep is as long as the machine is
// fast or slow in: its level (the median of its times over the points' usual ones) is taken out of
// it before medians are taken over sweeps, in two rounds of median polish.
std::vector<double> WithoutDrift(const std::vector<std::vector<double>>& sweeps) {
  std::vector<double> levels(sweeps.size(), 1);
  std::vector<double> usual(sweeps[0].size());
  std::vector<double> ratios;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < usual.size(); ++i) {
      ratios.clear();
      for (std::size_t s = 0; s < sweeps.size(); ++s) ratios.push_back(sweeps[s][i] / levels[s]);
      usual[i] = Median(ratios);
    }
    for (std::size_t s = 0; s < sweeps.size(); ++s) {
      ratios.clear();
      for (std::size_t i = 0; i < usual.size(); ++i) ratios.push_back(sweeps[s][i] / usual[i]);
      levels[s] = Median(ratios);
    }
  }
  const double level = Median(levels);
  for (double& us : usual) us *= level;
  return usual;
}

// Who works; kNobody ends it.
enum class Phase { kBoth, kFirst, kSecond, kNobody };

// Works in phase kBoth and in its own; returns how much longer a pass takes in the former. Each own
// phase is compared with the one after it, in which the other joins: what neither model does makes
// passes a quarter longer for a tenth of a second or for ten (quartiles over all phases gave
// anything from 1.02 to 1.55), and passes after an idle phase are slow for want of their weights.
double CompareWork(Device* device, PassProbe* probe, Phase own, const std::atomic<Phase>& phase) {
  device->Adopt();
  std::vector<double> ratios;
  std::vector<double> alone;
  std::vector<double> beside;
  const auto compare = [&] {
    if (!alone.empty() && !beside.empty()) ratios.push_back(Median(beside) / Median(alone));
    alone.clear();
    beside.clear();
  };
  for (Phase now = phase; now != Phase::kNobody; now = phase) {
    if (now != Phase::kBoth && now != own) {
      compare();
      std::this_thread::yield();
      continue;
    }
    const double us = probe->Us();
    if (phase != now) continue;
    if (now == own) {
      alone.push_back(us);
    } else if (!alone.empty()) {
      beside.push_back(us);
    }
  }
  compare();
  return ratios.empty() ? 1 : std::max(1.0, Median(ratios));
}

}  // namespace

PassProbe::PassProbe(Model* model, int sequences, int rows, int context)
    : model_(model),
      sequences_(sequences),
      longest_(std::clamp(context, 1, std::max(1, model->config().max_positions - rows))),
      blocks_of_sequence_(BlocksFor(longest_ + rows)),
      blocks_(Size(sequences) * Size(blocks_of_sequence_)),
      kv_(model->backend().AllocateKv(model->KvShapeFor(std::ssize(blocks_)))) {
  std::iota(blocks_.begin(), blocks_.end(), 0);
}

void PassProbe::Set(int rows, int context) {
  context = std::min(context, longest_);
  const int block = std::max(model_->config().parallel.block, 1);
  batch_.Clear();
  for (int s = 0; s < sequences_; ++s) {
    const std::int32_t* blocks = blocks_.data() + std::ptrdiff_t{blocks_of_sequence_} * s;
    batch_.block_tables.push_back(blocks);
    for (int position = context; position < context + rows; ++position) {
      const int row = position - context;
      const std::int32_t slot = blocks[position / kBlockSize] * kBlockSize + position % kBlockSize;
      batch_.rows.push_back({.token = 0,
                             .place = {.position = position,
                                       .slot = slot,
                                       .sequence = s,
                                       .trunk_length = position + 1,
                                       .tail_begin = 0},
                             .block_left = std::min(block - 1 - row % block, rows - 1 - row)});
    }
  }
}

double PassProbe::Us() {
  const int vocabulary = model_->config().vocabulary;
  for (ForwardRow& row : batch_.rows) row.token = TokenOfText(tokens_++, vocabulary);
  const std::int64_t start = NowNs();
  model_->Forward(batch_, kv_);
  return static_cast<double>(NowNs() - start) / 1e3;
}

PassTimes MeasurePassTimes(Model& model, std::span<const int> rows, std::span<const int> contexts,
                           std::int64_t budget_ns, int sweeps) {
  FT_CHECK(!rows.empty() && !contexts.empty());
  PassProbe probe(&model, 1, rows.back(), contexts.back());
  const std::int64_t begin = NowNs();
  const std::int64_t deadline = begin + budget_ns;
  std::vector<std::size_t> order;  // The order of measuring.
  std::vector<double> samples;
  const auto visit = [&](int context, std::size_t i) {
    probe.Set(rows[i], context);
    const std::int64_t start = NowNs();
    double us = probe.Us();
    for (std::size_t n = 1; n < kMostPasses && NowNs() - start < kWarmNs; ++n) us = probe.Us();
    samples.clear();
    if (us * 1e3 > kLongNs) samples.push_back(us);
    const std::int64_t warm = NowNs();
    const auto goes_on = [&](std::size_t passes) {
      if (passes < kLeastPasses) return passes < 2 || NowNs() - start < kLongVisitNs;
      return passes < kMostPasses && NowNs() - warm < kVisitNs;
    };
    while (goes_on(samples.size())) samples.push_back(probe.Us());
    return CappedMean(samples);
  };
  std::vector<double> first;  // By context, then by place in `order`.
  std::vector<double> known(rows.size());
  while (order.size() < rows.size() && (order.empty() || NowNs() <= deadline)) {
    const std::size_t i = NextToMeasure(rows, known);
    first.push_back(known[i] = visit(contexts[0], i));
    order.push_back(i);
  }
  PassTimes times;
  times.contexts.push_back(contexts[0]);
  for (const int context : contexts.subspan(1)) {
    if (context > probe.longest_context()) break;
    std::vector<double> column;
    while (column.size() < order.size() && NowNs() <= deadline) {
      column.push_back(visit(context, order[column.size()]));
    }
    if (column.size() < order.size()) break;
    first.insert(first.end(), column.begin(), column.end());
    times.contexts.push_back(context);
  }
  std::vector<std::vector<double>> visits = {std::move(first)};
  const std::int64_t sweep_ns = NowNs() - begin;
  for (int sweep = 1; sweep < sweeps && NowNs() + sweep_ns <= deadline; ++sweep) {
    std::vector<double> again;
    for (const int context : times.contexts) {
      for (const std::size_t i : order) again.push_back(visit(context, i));
    }
    visits.push_back(std::move(again));
  }
  const std::vector<double> usual = WithoutDrift(visits);

  const std::size_t columns = times.contexts.size();
  std::vector<std::size_t> place(order.size());
  std::iota(place.begin(), place.end(), 0);
  std::ranges::sort(place, {}, [&order](std::size_t i) { return order[i]; });
  for (const std::size_t i : place) times.rows.push_back(rows[order[i]]);
  times.us.resize(place.size() * columns);
  for (std::size_t c = 0; c < columns; ++c) {
    std::vector<double> us;
    us.reserve(place.size());
    for (const std::size_t i : place) us.push_back(usual[c * order.size() + i]);
    MakeAscending(&us);
    CapAtParts(times.rows, &us);
    for (std::size_t i = 0; i < us.size(); ++i) times.us[i * columns + c] = us[i];
  }
  return times;
}

double MeasureSequenceTokenUs(Model& model, int context) {
  constexpr int kSequences = 8;
  PassProbe together(&model, 1, kSequences, context);
  PassProbe apart(&model, kSequences, 1, together.longest_context());
  together.Set(kSequences, together.longest_context());
  apart.Set(1, together.longest_context());
  together.Us();
  apart.Us();
  // In turns and over the same tokens: the difference is small, and a machine that slows down
  // between two series of passes, or other experts, would be taken for it.
  std::vector<double> differences;
  for (int i = 0; i < kPairs; ++i) differences.push_back(apart.Us() - together.Us());
  const int further = kSequences - 1;
  return std::max(0.0, Median(differences)) / (further * together.longest_context());
}

Contention MeasureContention(const PassWorker& first, const PassWorker& second, int repeats) {
  constexpr int kRows = 8;
  constexpr int kContext = 128;
  constexpr double kLongestUs = 20'000;
  constexpr double kPhaseUs = 10'000;
  constexpr int kPassesOfPhase = 3;
  PassProbe one(first.model, 1, kRows, kContext);
  PassProbe other(second.model, 1, kRows, kContext);
  double longest_us = 0;
  for (PassProbe* probe : {&one, &other}) {
    probe->Set(kRows, kContext);
    probe->Us();
    longest_us = std::max(longest_us, probe->Us());
  }
  if (longest_us > kLongestUs) return {};
  const double phase_us = std::max(kPhaseUs, kPassesOfPhase * longest_us);
  const int rounds = repeats * (phase_us > kPhaseUs ? 2 : 8);
  std::atomic<Phase> phase = Phase::kFirst;
  Contention contention;
  std::thread worker(
      [&] { contention.first = CompareWork(first.device, &one, Phase::kFirst, phase); });
  std::thread beside;
  try {
    beside = std::thread(
        [&] { contention.second = CompareWork(second.device, &other, Phase::kSecond, phase); });
  } catch (...) {
    phase = Phase::kNobody;
    worker.join();
    throw;
  }
  for (int i = 0; i < rounds; ++i) {
    for (const Phase next : {Phase::kFirst, Phase::kBoth, Phase::kSecond, Phase::kBoth}) {
      phase = next;
      std::this_thread::sleep_for(std::chrono::microseconds(std::lround(phase_us)));
    }
  }
  phase = Phase::kNobody;
  worker.join();
  beside.join();
  return contention;
}

}  // namespace foretoken
