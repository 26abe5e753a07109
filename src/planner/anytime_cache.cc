#include "planner/anytime_cache.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "base/check.h"

namespace foretoken {
namespace {

// Branches less likely than this change no prediction.
constexpr double kLeastProbability = 1e-5;

// As in the speculator: the first token of a branch turns a miss into a hit.
constexpr double kHitValue = 2;
// How far the times of single passes lie from the mean, relative.
constexpr double kJitter = 0.1;

struct Branch {
  double p = 0;      // P(this outcome)
  double value = 0;  // Of its next token.
  int tokens = 0;
  int first_pass = 0;  // Its node is ranked from then on.
};

using Branches = StaticVector<Branch, kMaxCacheBudget>;

Branches ListBranches(const CacheRace& race, const FanoutShape& shape, const NodeLaw& nodes,
                      const HitCurves& curves) {
  const int proposal = static_cast<int>(nodes.size()) - 1;
  Branches branches;
  for (int fanout = 1; fanout <= kMaxFanout; ++fanout) {
    for (int node = 0; node <= proposal; ++node) {
      if (fanout > shape.at[node]) continue;
      const double p = nodes[node] * curves.at(node, proposal).gain(fanout);
      if (p < kLeastProbability || branches.size() == kMaxCacheBudget) continue;
      const bool ranked = race.ranked && node < proposal;
      branches.push_back({.p = p, .value = p * kHitValue, .first_pass = ranked ? 0 : 1});
    }
  }
  return branches;
}

// Rows of one pass and the time it takes.
struct Pass {
  std::size_t branches = 0;  // Of each sequence.
  double us = 0;
};

// The speculator's choice among branches in descending order of value: the most value for the time.
Pass ChoosePass(const CacheRace& race, const Branches& branches, std::size_t ready,
                int fixed_rows) {
  const TimeTable& draft = race.model->draft;
  const double contention = race.model->draft_contention;
  const int limit = race.model->draft_rows_per_pass;
  const int most = limit > 0 ? limit : std::numeric_limits<int>::max();
  Pass best;
  if (fixed_rows > 0) best.us = contention * draft.us(fixed_rows, race.context);
  double best_rate = 0;
  double value = 0;
  for (std::size_t n = 1; n <= ready; ++n) {
    const auto rows = static_cast<int>(n) * race.batch;
    // Where not even one row of each sequence fits, they take turns.
    if (rows > most && n > 1) break;
    const double turns = std::max(1.0, double(rows) / most);
    value += branches[n - 1].value;
    const double us =
        contention * turns * draft.us(fixed_rows + std::min(rows, most), race.context);
    if (value < best_rate * us) continue;
    best_rate = us > 0 ? value / us : value;
    best = {.branches = n, .us = us};
  }
  return best;
}

}  // namespace

CacheForecast ForecastCache(const CacheRace& race, const FanoutShape& shape, const NodeLaw& nodes,
                            const HitCurves& curves) {
  FT_CHECK(shape.at.size() == nodes.size() && race.batch >= 1);
  const auto& acceptance = race.model->draft_model.acceptance;
  FT_CHECK(!acceptance.empty());
  Branches branches = ListBranches(race, shape, nodes, curves);
  CacheForecast forecast;
  forecast.chain.resize(race.lookahead + 1);
  double left = race.us;
  double unfinished = 0;  // P(the last pass is not over in time).
  std::size_t in_balance = 0;
  for (int pass = 0; left > 0; ++pass) {
    const auto ready_end =
        std::partition(branches.begin(), branches.end(), [&](const Branch& branch) {
          return branch.tokens < race.lookahead && branch.first_pass <= pass;
        });
    std::sort(branches.begin(), ready_end,
              [](const Branch& a, const Branch& b) { return a.value > b.value; });
    const int fixed_rows = pass == 0 ? race.trunk_rows * race.batch : 0;
    const Pass chosen = ChoosePass(
        race, branches, static_cast<std::size_t>(ready_end - branches.begin()), fixed_rows);
    if (chosen.branches == 0 && fixed_rows == 0) break;
    if (left < (1 - kJitter) * chosen.us) break;
    left -= chosen.us;
    for (std::size_t i = 0; i < chosen.branches; ++i) {
      Branch& branch = branches[i];
      const std::size_t last = acceptance.size() - 1;
      if (branch.tokens == 0) branch.value = branch.p;
      branch.value *= acceptance[std::min<std::size_t>(branch.tokens++, last)];
    }
    if (left < kJitter * chosen.us) {
      unfinished = 0.5 - 0.5 * left / (kJitter * chosen.us);
      in_balance = chosen.branches;
      break;
    }
  }
  double hit = 0;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const Branch& branch = branches[i];
    const double late = i < in_balance ? branch.p * unfinished : 0;
    forecast.chain[branch.tokens] += branch.p - late;
    if (late > 0) forecast.chain[branch.tokens - 1] += late;
    hit += branch.tokens == 0 ? 0 : branch.p - (branch.tokens == 1 ? late : 0);
  }
  forecast.chain[0] = std::max(0.0, 1 - hit);
  return forecast;
}

}  // namespace foretoken
