#include "apps/foretoken/common/bench_stats.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/numbers/integers.h"
#include "base/numbers/philox.h"

namespace foretoken {
namespace {

constexpr int kResamples = 1000;
constexpr double kBinGrowth = 1.1;

double GeometricMean(std::span<const double> ratios) {
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  return std::exp(sum / static_cast<double>(ratios.size()));
}

}  // namespace

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double rank = q * static_cast<double>(values.size() - 1);
  const std::size_t below = rank;
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - static_cast<double>(below)) * (values[above] - values[below]);
}

Interval BootstrapRatio(std::span<const double> ratios) {
  if (ratios.empty()) return {};
  std::vector<double> means(kResamples);
  std::vector<double> sample(ratios.size());
  for (int r = 0; r < kResamples; ++r) {
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const std::uint32_t draw = PhiloxDraw(0, static_cast<std::uint64_t>(r),
                                            static_cast<std::uint32_t>(i), NoisePurpose::kScript);
      sample[i] = ratios[std::uint64_t{draw} * ratios.size() >> 32];
    }
    means[r] = GeometricMean(sample);
  }
  return {GeometricMean(ratios), Quantile(means, 0.025), Quantile(means, 0.975)};
}

void AppendGaps(const Generation& generation, std::vector<double>* of_tokens,
                std::vector<double>* of_bursts) {
  for (std::size_t i = 1; i < generation.bursts.size(); ++i) {
    const Generation::Burst& burst = generation.bursts[i];
    const auto gap = static_cast<double>(burst.time_ns - generation.bursts[i - 1].time_ns);
    of_bursts->push_back(gap);
    of_tokens->insert(of_tokens->end(), Size(burst.tokens), gap / burst.tokens);
  }
}

std::vector<std::pair<double, std::int64_t>> LogHistogram(std::span<const double> values,
                                                          double unit) {
  std::map<int, std::int64_t> bins;
  for (const double value : values) {
    if (value > 0) ++bins[static_cast<int>(std::ceil(std::log(value) / std::log(kBinGrowth)))];
  }
  std::vector<std::pair<double, std::int64_t>> histogram;
  for (const auto& [bin, count] : bins) {
    histogram.emplace_back(std::pow(kBinGrowth, bin) / unit, count);
  }
  return histogram;
}

void AddStats(const RequestStats& stats, RequestStats* total) {
  total->AddCounts(stats);
  total->finished_ns += stats.finished_ns - stats.first_token_ns;
}

std::vector<double> AcceptancePerPosition(const RequestStats& stats) {
  std::vector<double> shares;
  for (std::size_t i = 0; i < stats.reached_at.size() && stats.reached_at[i] > 0; ++i) {
    shares.push_back(static_cast<double>(stats.accepted_at[i]) / stats.reached_at[i]);
  }
  return shares;
}

}  // namespace foretoken
