#include "planner/row_price.h"

#include <algorithm>

namespace foretoken {
namespace {

// The last few dozen rounds: batches come and go.
constexpr double kKeep = 0.97;
// Choosing, verifying and keeping a row costs a little even where the pass does not notice it.
constexpr double kLeastPrice = 0.01;

}  // namespace

void RowPrice::Observe(int sequences, int rows, double tokens, double pass_us, double round_us) {
  for (double* sum : {&rounds_, &other_rows_, &tokens_, &in_pass_us_, &all_us_, &table_us_}) {
    *sum *= kKeep;
  }
  rounds_ += 1;
  other_rows_ += rows * (1 - 1.0 / sequences);
  tokens_ += tokens;
  in_pass_us_ += pass_us;
  all_us_ += std::max(round_us, pass_us);
  table_us_ += pass_us_.us(rows, 0);
}

double RowPrice::Of(int n, double other_rows) const {
  const bool seen = rounds_ > 0;
  const double before = other_rows + n;
  const double tokens_per_us = seen ? tokens_ / table_us_ : 1 / pass_us_.us(1, 0);
  const double share = seen ? in_pass_us_ / all_us_ : 1;
  const double row_us = pass_us_.us(before + 1, 0) - pass_us_.us(before, 0);
  return std::max(row_us * share * tokens_per_us, kLeastPrice);
}

}  // namespace foretoken
