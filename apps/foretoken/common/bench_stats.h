#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "apps/foretoken/common/generation.h"
#include "foretoken/request.h"

namespace foretoken {

/// The q-quantile of `values` (any order), interpolated between the two nearest; 0 when empty.
double Quantile(std::vector<double> values, double q);

/// An estimate with a 95 % confidence interval.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// The geometric mean of positive paired ratios, with a percentile bootstrap interval over the
/// pairs (1,000 resamples, always the same). All zero when empty.
Interval BootstrapRatio(std::span<const double> ratios);

/// Gaps between bursts in nanoseconds, which are what a reader waits, and between tokens: one for
/// every token after the first burst, as a burst's gap to the one before is spread evenly over its
/// tokens, which came together.
void AppendGaps(const Generation& generation, std::vector<double>* of_tokens,
                std::vector<double>* of_bursts);

/// Counts of `values` in bins whose upper edges grow by a tenth: [edge / unit, count], ascending,
/// without empty bins.
std::vector<std::pair<double, std::int64_t>> LogHistogram(std::span<const double> values,
                                                          double unit);

/// Adds counts and durations of one request to a total. Times are kept as durations: first token
/// after 0, finish after the decode time.
void AddStats(const RequestStats& stats, RequestStats* total);

/// Accepted over verified, given that all before were accepted, per proposal position that was
/// ever reached.
std::vector<double> AcceptancePerPosition(const RequestStats& stats);

}  // namespace foretoken
