#include "core/prediction/row_price.h"

#include <algorithm>

namespace foretoken {
namespace {

// The last few dozen rounds: batches come and go. How passes of different rows compare stays.
constexpr double kKeep = 0.97;
constexpr double kKeepTimes = 0.998;
constexpr int kRoundsBetweenTables = 16;
// Choosing, verifying and keeping a row costs a little even where the pass does not notice it.
constexpr double kLeastPrice = 0.01;

}  // namespace

void RowPrice::Observe(const Seen& round) {
  const double level = expected_us_ > 0 ? in_pass_us_ / expected_us_ : 1;
  times_.Decay(kKeepTimes);
  times_.Add(round.rows, round.context, round.pass_us / level);
  if (++observed_ % kRoundsBetweenTables == 0) pass_us_ = times_.Table();
  for (double* sum :
       {&rounds_, &other_rows_, &context_, &tokens_, &in_pass_us_, &all_us_, &expected_us_}) {
    *sum *= kKeep;
  }
  rounds_ += 1;
  other_rows_ += round.rows * (1 - 1.0 / round.sequences);
  context_ += round.context;
  tokens_ += round.tokens;
  in_pass_us_ += round.pass_us;
  all_us_ += std::max(round.round_us, round.pass_us);
  expected_us_ += pass_us_.us(round.rows, round.context);
}

void RowPrice::Fill(double other_rows, std::span<double> prices) const {
  const bool seen = rounds_ > 0;
  const double tokens_per_us = seen ? tokens_ / expected_us_ : 1 / pass_us_.us(1, context());
  const double share = seen ? in_pass_us_ / all_us_ : 1;
  double rows = other_rows + 1;
  double before_us = pass_us_.us(rows, context());
  for (double& price : prices) {
    const double with_us = pass_us_.us(++rows, context());
    price = std::max((with_us - before_us) * share * tokens_per_us, kLeastPrice);
    before_us = with_us;
  }
}

}  // namespace foretoken
