#include "core/prediction/anytime_cache.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "core/prediction/branch_rows.h"

namespace foretoken {
namespace {

// Branches less likely than this change no prediction.
constexpr double kLeastProbability = 1e-5;
// How far the times of single passes lie from the mean, relative.
constexpr double kJitter = 0.1;

struct Branch {
  double p = 0;      // P(this outcome)
  double value = 0;  // The value of what the next pass adds to it.
  int tokens = 0;
  int longest = 0;
  int first_pass = 0;  // Its node is ranked from then on.
};

using Branches = StaticVector<Branch, kMaxCacheBudget>;

Branches ListBranches(const CacheRace& race, const FanoutShape& shape,
                      const NodeDistribution& nodes, const HitCurves& curves) {
  const int proposal = std::ssize(nodes) - 1;
  const DraftPassShape& passes = race.model->first_draft().pass;
  const auto& acceptance = race.model->draft_model().acceptance;
  Branches branches;
  for (int fanout = 1; fanout <= kMaxFanout; ++fanout) {
    for (int node = 0; node <= proposal; ++node) {
      if (fanout > shape.at[node]) continue;
      const double p = nodes[node] * curves.at(node, proposal).gain(fanout);
      if (p < kLeastProbability || branches.size() == kMaxCacheBudget) continue;
      const int longest = passes.LongestBehind(node, race.lookahead);
      if (longest < 1) continue;
      // Beyond its first token, what else the pass says and is likely to be accepted.
      const double further =
          passes.several() ? ExpectedTokens(OutcomeNodes(acceptance, longest - 1)) - 1 : 0;
      const bool ranked = race.ranked && node < proposal;
      branches.push_back({.p = p,
                          .value = p * (kHitValue + further),
                          .longest = longest,
                          .first_pass = ranked ? 0 : 1});
    }
  }
  return branches;
}

// What passes of the speculator take. Most have few rows, and a forecast asks for hundreds: those
// are kept. (A prediction at K = 7, B = 40 and batch 4 took 0.9 ms.)
class PassClock {
 public:
  explicit PassClock(const CacheRace& race) : race_(race) {}

  double us(int rows) {
    if (rows >= std::ssize(kept_)) return Compute(rows);
    double& kept = kept_[rows];
    if (kept == 0) kept = Compute(rows);
    return kept;
  }

 private:
  double Compute(int rows) const {
    const CostModel& model = *race_.model;
    return model.draft_contention * model.first_draft().apart.us(rows, race_.context) +
           model.draft_model().us * rows;
  }

  const CacheRace& race_;
  std::array<double, std::size_t{2} * kBranchRowsPerPass> kept_{};
};

// The speculator's choice among branches in descending order of value, the same of each sequence.
PassChoice ChoosePass(const CacheRace& race, std::span<const Branch> ready, int fixed_rows,
                      PassClock* clock) {
  const int limit = race.model->draft_rows_per_pass;
  const int most = limit > 0 ? limit : std::numeric_limits<int>::max();
  const int rows_each = race.model->first_draft().pass.Rows(race.lookahead);
  // Where not even one branch of each sequence fits, they take turns.
  const int at_once = std::max(1, most / (race.batch * rows_each));
  const auto us = [&](std::size_t branches) {
    const int rows = static_cast<int>(branches) * race.batch * rows_each;
    const double turns = std::max(1.0, double(rows) / most);
    return turns * clock->us(fixed_rows + std::min(rows, most));
  };
  const PassChoice choice = MostForItsTime(
      std::min<std::size_t>(ready.size(), at_once),
      [ready](std::size_t branch) { return ready[branch].value; }, us);
  if (choice.count == 0 && fixed_rows > 0) return {.count = 0, .us = clock->us(fixed_rows)};
  return choice;
}

// Branches in descending order of value, where hardly any has changed its place.
void Reorder(std::span<Branch> branches) {
  for (std::size_t i = 1; i < branches.size(); ++i) {
    const Branch moved = branches[i];
    std::size_t to = i;
    for (; to > 0 && branches[to - 1].value < moved.value; --to) branches[to] = branches[to - 1];
    branches[to] = moved;
  }
}

// Puts the branches of [0, end) that have all their tokens last; returns how many have not.
std::size_t CompleteLast(Branches* branches, std::size_t end) {
  const auto grows = [](const Branch& branch) { return branch.tokens < branch.longest; };
  const auto last = std::partition(branches->begin(), branches->begin() + end, grows);
  return last - branches->begin();
}

}  // namespace

CacheForecast ForecastCache(const CacheRace& race, const FanoutShape& shape,
                            const NodeDistribution& nodes, const HitCurves& curves) {
  FT_CHECK(shape.at.size() == nodes.size() && race.batch >= 1);
  const auto& acceptance = race.model->draft_model().acceptance;
  FT_CHECK(!acceptance.empty());
  const bool several = race.model->first_draft().pass.several();
  Branches branches = ListBranches(race, shape, nodes, curves);
  CacheForecast forecast;
  forecast.chain.resize(race.lookahead + 1);
  PassClock clock(race);
  double left = race.us;
  double unfinished = 0;  // P(the last pass is not over in time).
  std::size_t in_balance = 0;
  // [0, ready) may grow in the next pass. In the first that are the branches at ranked nodes.
  const auto ranked = std::partition(branches.begin(), branches.end(),
                                     [](const Branch& branch) { return branch.first_pass == 0; });
  std::size_t ready = ranked - branches.begin();
  for (int pass = 0; left > 0; ++pass) {
    if (pass == 1) ready = CompleteLast(&branches, branches.size());
    const std::span<Branch> growing(branches.begin(), ready);
    Reorder(growing);
    const int fixed_rows = pass == 0 ? race.trunk_rows * race.batch : 0;
    const PassChoice chosen = ChoosePass(race, growing, fixed_rows, &clock);
    if (chosen.count == 0 && fixed_rows == 0) break;
    if (left < (1 - kJitter) * chosen.us) break;
    left -= chosen.us;
    for (std::size_t i = 0; i < chosen.count; ++i) {
      Branch& branch = branches[i];
      if (several) {
        branch.tokens = branch.longest;
        continue;
      }
      const std::size_t last = acceptance.size() - 1;
      if (branch.tokens == 0) branch.value = branch.p;
      branch.value *= acceptance[std::min<std::size_t>(branch.tokens++, last)];
    }
    if (left < kJitter * chosen.us) {
      unfinished = 0.5 - 0.5 * left / (kJitter * chosen.us);
      in_balance = chosen.count;
      break;
    }
    ready = CompleteLast(&branches, ready);
  }
  double hit = 0;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const Branch& branch = branches[i];
    const double late = i < in_balance ? branch.p * unfinished : 0;
    const int before = several ? 0 : branch.tokens - 1;  // The last pass.
    forecast.chain[branch.tokens] += branch.p - late;
    if (late > 0) forecast.chain[before] += late;
    hit += branch.tokens == 0 ? 0 : branch.p - (before == 0 ? late : 0);
  }
  forecast.chain[0] = std::max(0.0, 1 - hit);
  return forecast;
}

}  // namespace foretoken
