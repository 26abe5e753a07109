#include "core/engine/round/round.h"

#include <algorithm>

namespace foretoken {

void RoundTimer::RecordPass(std::int64_t pass_start, std::int64_t pass_end, Round* round) {
  const bool follows = last_pass_end_ != 0;
  round->pass_ns = pass_end - pass_start;
  round->gap_ns = follows ? pass_start - last_pass_end_ : -1;
  round->all_ns = pass_end - (follows ? last_pass_end_ : pass_start);
  last_pass_end_ = pass_end;
  ++stats_.passes;
  stats_.rows += round->rows;
  if (round->prefills) return;
  stats_.target.Add(round->pass_ns);
  if (!follows) return;
  stats_.wait.Add(round->wait_ns);
  stats_.host.Add(round->gap_ns - round->wait_ns);
  if (last_round_all_hit_) stats_.hit_gap.Add(round->gap_ns);
}

void RoundTimer::RecordOutcomes(const Round& round) {
  if (!round.prefills) stats_.choose.Add(round.choose_ns);
  last_round_all_hit_ = std::ranges::all_of(round.pass, [](const Sequence* sequence) {
    return sequence->hit == true && !sequence->finish.has_value();
  });
}

}  // namespace foretoken
