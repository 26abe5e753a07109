#pragma once

#include "core/engine/round/drafters.h"
#include "core/engine/round/round.h"
#include "core/engine/scheduler.h"
#include "core/kv/tree_kv.h"
#include "core/model/model.h"

namespace foretoken {

/// Rows of a pass, at most, whose logits tell log-probabilities of prompts: of a vocabulary of
/// 128,000 these logits are 33 MB.
inline constexpr int kScoredRowsPerPass = 64;

/// Decides what each running sequence computes in the next pass: its last token and proposal, or
/// up to `prompt_budget` rows of prompts in all, kScoredRowsPerPass of them of prompts that are to
/// be scored. Preempts the youngest where the KV does not suffice for all. Fills the round and the
/// batch; false where nobody computes anything.
bool PlanPass(int prompt_budget, Scheduler* scheduler, Round* round, ForwardBatch* batch);

/// The target's part of a round: one pass over rows of all running sequences. Owns their KV.
class TargetPass {
 public:
  /// `target` and `kv`, whose blocks they are, outlive the pass. Its passes keep `taps`.
  TargetPass(Model* target, const KvCache& kv, const TapShape& taps, int max_batch,
             int prefill_chunk);

  /// As PlanPass, after making room for the most rows that the sequences' plans allow.
  bool Plan(const RetrievalBudget& budget, Scheduler* scheduler, Round* round);

  /// Computes what was planned. The logits, in the order of the sequences' `first_logits`, stay
  /// until the next pass; so do the states, in that of `first_state`.
  Logits Run() { return target_->Forward(batch_, kv_); }
  const float* states() const { return target_->states(); }

  /// Where the sequences' KV lies.
  KvMemory memory() { return {&target_->backend(), &kv_}; }
  /// What its passes keep, and where that lies; null where it is nothing.
  const TapShape& tap_shape() const { return kv_.taps.shape; }
  const TapStore* taps() const { return kv_.taps.shape.points.empty() ? nullptr : &kv_.taps; }

 private:
  Model* target_;
  KvStore kv_;
  int prefill_chunk_;
  ForwardBatch batch_;
};

}  // namespace foretoken
