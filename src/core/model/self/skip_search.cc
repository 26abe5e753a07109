#include "core/model/self/skip_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace foretoken {
namespace {

constexpr int kMostDrafted = 16;
constexpr int kTries = 200;  // Tries to find a set that was not named yet.
// Each time so many tries have failed, a set is changed once more.
constexpr int kTriesOfEach = 40;

}  // namespace

double PredictedSpeedup(double agreement, double cost) {
  double best = 0;
  double emitted = 1;  // (1 - a^(g+1)) / (1 - a) = 1 + a + ... + a^g
  double power = 1;
  for (int drafted = 1; drafted <= kMostDrafted; ++drafted) {
    power *= agreement;
    emitted += power;
    best = std::max(best, emitted / (drafted * cost + 1));
  }
  return best;
}

Result<SkipSearch> SkipSearch::Begin(ModelConfig model, double ratio, int budget,
                                     std::uint64_t seed) {
  SkipSearch search(std::move(model), ratio, budget, seed);
  if (search.allowed_.empty()) {
    return InvalidInput(
        "the model has no sub-layer that could be left out: none between its first and its last "
        "layer whose keys and values no other reads");
  }
  return search;
}

SkipSearch::SkipSearch(ModelConfig model, double ratio, int budget, std::uint64_t seed)
    : model_(std::move(model)), budget_(budget), random_(seed) {
  const int layers = model_.layer_count();
  for (int sublayer = 2; sublayer < 2 * (layers - 1); ++sublayer) {
    SkippedSublayers alone(layers);
    At(sublayer, &alone) = true;
    if (Without(alone, model_).ok()) allowed_.push_back(sublayer);
  }
  const int most = allowed_.size();
  wanted_ = std::clamp(static_cast<int>(std::lround(ratio * 2 * layers)), std::min(1, most), most);
}

std::vector<bool>::reference SkipSearch::At(int sublayer, SkippedSublayers* set) const {
  const std::size_t layer = sublayer / 2;
  return sublayer % 2 == 0 ? set->mixers[layer] : set->mlps[layer];
}

bool SkipSearch::Has(int sublayer, const SkippedSublayers& set) const {
  const std::size_t layer = sublayer / 2;
  return sublayer % 2 == 0 ? set.mixers[layer] : set.mlps[layer];
}

int SkipSearch::Pick(int count) {
  // Not a distribution of the library's, which differ from one to another.
  return random_() % static_cast<std::uint64_t>(count);
}

int SkipSearch::PickOf(const SkippedSublayers& set, bool skipped) {
  const auto fits = [&](int sublayer) { return Has(sublayer, set) == skipped; };
  const int count = std::ranges::count_if(allowed_, fits);
  if (count == 0) return -1;
  int left = Pick(count);
  for (const int sublayer : allowed_) {
    if (fits(sublayer) && left-- == 0) return sublayer;
  }
  return -1;
}

SkippedSublayers SkipSearch::Random() {
  SkippedSublayers set(model_.layer_count());
  for (int i = 0; i < wanted_; ++i) At(PickOf(set, false), &set) = true;
  return set;
}

SkippedSublayers SkipSearch::Changed(SkippedSublayers set) {
  const int out = PickOf(set, false);
  const int back = PickOf(set, true);
  const int kind = Pick(4);  // As often of the same size as of another.
  if (kind != 0 && out >= 0) At(out, &set) = true;
  if (kind != 1 && back >= 0) At(back, &set) = false;
  return set;
}

std::optional<SkippedSublayers> SkipSearch::Next() {
  if (std::ssize(named_) == budget_) return std::nullopt;
  const bool changes = best_.has_value() && compared_ >= (budget_ + 2) / 3;
  for (int i = 0; i < kTries; ++i) {
    SkippedSublayers set = changes ? Changed(best_->skipped) : Random();
    // Where nearly all of them were named, they are changed further.
    for (int more = i / kTriesOfEach; more > 0; --more) set = Changed(std::move(set));
    if (set.count() == 0 || !Without(set, model_).ok()) continue;
    if (named_.insert(set.ToText()).second) return set;
  }
  return std::nullopt;
}

void SkipSearch::Tell(ComparedSet set) {
  ++compared_;
  if (!best_.has_value() || set.speedup > best_->speedup) best_ = std::move(set);
}

}  // namespace foretoken
