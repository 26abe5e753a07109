#include "core/planner/mode_records.h"

#include <algorithm>
#include <cmath>

#include "core/planner/decay_rates.h"

namespace foretoken {
namespace {

// Tokens that predictions count for beside measurements.
constexpr double kCorrectionPrior = 48;
constexpr double kLeastCorrection = 0.25;
constexpr double kMostCorrection = 2.0;

}  // namespace

void ModeRecords::Add(Mode mode, int rounds, double tokens, double us, double predicted_tokens) {
  Record& seen = records_[mode];
  for (Record& any : records_) {
    const double keep = &any == &seen ? kKeepPass : kKeepUnobserved;
    for (double* sum : {&any.tokens, &any.us, &any.predicted_tokens}) *sum *= keep;
  }
  seen.rounds += rounds;
  seen.tokens += tokens;
  seen.us += us;
  seen.predicted_tokens += predicted_tokens;
}

double ModeRecords::correction(Mode mode) const {
  const Record& record = records_[mode];
  const double ratio =
      (kCorrectionPrior + record.tokens) / (kCorrectionPrior + record.predicted_tokens);
  return std::clamp(ratio, kLeastCorrection, kMostCorrection);
}

double ModeRecords::doubt(Mode mode) const {
  return 1 / std::sqrt(kCorrectionPrior + records_[mode].tokens);
}

ByMode<ModeReport> ModeRecords::Report() const {
  ByMode<ModeReport> report;
  for (const Mode mode : kModes) {
    const Record& record = records_[mode];
    const double seconds = record.us / 1e6;
    report[mode] = {.rounds = record.rounds,
                    .tokens_per_second = seconds > 0 ? record.tokens / seconds : 0,
                    .predicted = seconds > 0 ? record.predicted_tokens / seconds : 0,
                    .correction = correction(mode)};
  }
  return report;
}

}  // namespace foretoken
