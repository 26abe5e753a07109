#include "core/sampling/filter.h"

#include <algorithm>
#include <cmath>

#include "base/numbers/portable_math.h"
#include "core/sampling/softmax.h"

namespace foretoken {
namespace {

constexpr int kGroup = 64;

/// The logit of a token `log_weight` below the most likely one, as a lower bound of float rounding.
float LogitBelow(float max, float temperature, double log_weight) {
  return static_cast<float>(double{max} + double{temperature} * log_weight);
}

}  // namespace

LogitFilter::LogitFilter(int vocabulary) : vocabulary_(vocabulary) {
  kept_.reserve(vocabulary);
  group_maxima_.reserve(vocabulary / kGroup + 1);
}

void LogitFilter::Gather(const float* logits, float lowest) {
  kept_.clear();
  for (Token token = 0; token < vocabulary_; ++token) {
    if (logits[token] >= lowest) kept_.push_back({logits[token], token});
  }
}

float LogitFilter::LogitReachedBy(const float* logits, int k) {
  group_maxima_.clear();
  for (int begin = 0; begin < vocabulary_; begin += kGroup) {
    group_maxima_.push_back(MaxLogit(logits + begin, std::min(kGroup, vocabulary_ - begin)));
  }
  if (k > std::ssize(group_maxima_)) return kMinusInfinity;
  std::ranges::nth_element(group_maxima_, group_maxima_.begin() + (k - 1), std::greater());
  return group_maxima_[k - 1];
}

void LogitFilter::KeepTopK(const float* logits, int k) {
  Gather(logits, LogitReachedBy(logits, k));
  if (k >= std::ssize(kept_)) return;
  std::nth_element(kept_.begin(), kept_.begin() + k, kept_.end());
  kept_.resize(k);
}

double LogitFilter::KeptMass(float max, float temperature) const {
  double mass = 0;
  for (const Entry& entry : kept_) mass += Weight(entry.logit, max, temperature);
  return mass;
}

void LogitFilter::GatherNucleus(const float* logits, float top_p, float max, float temperature,
                                double total) {
  // The usual nucleus is small: look at about one token of every hundred before looking at more.
  Gather(logits, LogitReachedBy(logits, vocabulary_ / kGroup / 2 + 1));
  if (KeptMass(max, temperature) >= top_p * total) return;
  // Tokens below a share of (1 - top_p) / vocabulary have less than 1 - top_p together, so the
  // nucleus is complete without them; half of that leaves room for rounding.
  const double share = 0.5 * (1.0 - double{top_p}) / vocabulary_;
  Gather(logits, LogitBelow(max, temperature, PortableLog(share * total)));
}

void LogitFilter::KeepNucleus(float top_p, float max, float temperature, double total) {
  // Bisection: everything before `begin` is in the nucleus, nothing from `end` on is.
  double missing = top_p * total;
  auto begin = kept_.begin();
  auto end = kept_.end();
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end);
    double upper = 0;
    for (auto entry = begin; entry != middle; ++entry) {
      upper += Weight(entry->logit, max, temperature);
    }
    if (upper >= missing) {
      end = middle;
    } else {
      missing -= upper;
      begin = middle;
    }
  }
  kept_.erase(end, kept_.end());
}

void LogitFilter::Apply(const SamplingParams& params, float* logits) {
  const float temperature = params.temperature;
  if (temperature == 0.0F || !params.has_filters()) return;
  const float max = MaxLogit(logits, vocabulary_);
  if (!std::isfinite(max)) return;

  const float min_p_logit = params.min_p > 0.0F
                                ? LogitBelow(max, temperature, PortableLog(double{params.min_p}))
                                : kMinusInfinity;
  const bool top_k = params.top_k > 0 && params.top_k < vocabulary_;
  if (!top_k && params.top_p >= 1.0F) {
    for (int i = 0; i < vocabulary_; ++i) {
      logits[i] = logits[i] >= min_p_logit ? logits[i] : kMinusInfinity;
    }
    return;
  }

  double total = 0;
  if (top_k) {
    KeepTopK(logits, params.top_k);
    total = KeptMass(max, temperature);
  } else {
    total = SumWeights(logits, vocabulary_, max, temperature);
    GatherNucleus(logits, params.top_p, max, temperature, total);
  }
  if (params.top_p < 1.0F) KeepNucleus(params.top_p, max, temperature, total);

  std::fill_n(logits, vocabulary_, kMinusInfinity);
  for (const Entry& entry : kept_) {
    if (entry.logit >= min_p_logit) logits[entry.token] = entry.logit;
  }
}

}  // namespace foretoken
