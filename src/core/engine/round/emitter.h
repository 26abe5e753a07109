#pragma once

#include <vector>

#include "core/backend/backend.h"
#include "core/engine/round/round.h"
#include "core/sampling/logprobs.h"

namespace foretoken {

/// Tells listeners what a round brought their sequences: the round, then its tokens with text and
/// log-probabilities.
class Emitter {
 public:
  Emitter(int vocabulary, int hidden) : vocabulary_(vocabulary), hidden_(hidden) {}

  /// Reduces the prompt's rows of the pass to log-probabilities, and tells them once all are there.
  /// Before Emit. Where a row has no finite maximum, the sequence ends.
  void ScorePrompt(Logits logits, Sequence* sequence);

  /// Adds the prompt's states of the pass [rows, hidden] to the embedding, and tells it once all
  /// are there; where it is not finite, the sequence ends. In double, one row after the other: its
  /// bits do not depend on what a pass holds.
  void PoolPrompt(const float* states, Sequence* sequence) const;

  /// For a sequence whose outcome is committed. `logits` are those of the whole pass. Tokens behind
  /// a stop string are taken back.
  void Emit(const Round& round, Logits logits, Sequence* sequence);

 private:
  int vocabulary_;
  int hidden_;
  std::vector<TokenLogprob> logprobs_;  // Reused between rounds.
};

}  // namespace foretoken
