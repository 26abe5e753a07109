#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/round/round.h"
#include "core/kv/tap_rows.h"
#include "core/kv/tree_kv.h"
#include "core/model/judge/judge_head.h"
#include "core/sampling/sampler.h"
#include "core/ssd/speculator_client.h"

namespace foretoken {

/// What Lossy::kJudge needs: a head, and the part of what passes keep that is the final state of
/// each row. Borrows both.
struct Judge {
  const JudgeHead* head = nullptr;
  const TapStore* kept = nullptr;
  TapPart final_state;
};

/// Finds what a pass says of each proposal: by shared noise, or by rejection for sequences whose
/// proposals are drawn.
class Verifier {
 public:
  /// `backend` outlives the verifier.
  Verifier(Backend* backend, int vocabulary, std::optional<Script> script,
           const LossyRule& lossy = {}, const Judge& judge = {})
      : vocabulary_(vocabulary),
        script_(std::move(script)),
        lossy_(lossy),
        judge_(judge),
        sampler_(backend, vocabulary) {}

  /// Sets the sequence's outcome, what it emits, and where that was chosen. Where the logits of a
  /// row that is reached have no finite maximum, the path ends before it, without a bonus token
  /// (Sequence::not_finite). `logits` are those of
  /// the whole pass. `speculator` is asked for what it has prepared where outcomes follow a script;
  /// null: there is none. A proposal whose masks take more than `mask_steps` is not followed to its
  /// end.
  void Verify(Logits logits, const SpeculatorClient* speculator, std::int64_t mask_steps,
              Sequence* sequence);

 private:
  Outcome ByNoise(Logits logits, const SpeculatorClient* speculator, std::int64_t mask_steps,
                  Sequence* sequence);
  Outcome ByRejection(Logits logits, std::int64_t mask_steps, Sequence* sequence);
  // -1: the logits have no finite maximum.
  Token Choose(Logits logits, int node, const Sequence& sequence);
  // The target's distribution behind a node; of a greedy sequence at temperature 1.
  std::span<const float> DistributionAt(Logits logits, int node, const Sequence& sequence);
  // The token of a child that the lossy rule accepts although `choice` is what the target chose
  // there; else `choice`.
  Token Relax(Logits logits, int node, Token choice, Sequence* sequence);
  // The child of `node` that the judge approves most, if it approves one enough, among those that
  // `p`, the distribution there, leaves possible; 0: none.
  int MostApprovedChild(int node, std::span<const float> p, const Sequence& sequence) const;
  // What is chosen at a node with the logit of the scripted answer's next token far above all
  // others; behind the answer's end `choice`.
  Token FollowAnswer(Logits logits, int node, Token choice, const Sequence& sequence);
  Token FollowScript(const SpeculatorClient* speculator, int node, Token choice,
                     const Sequence& sequence);

  int vocabulary_;
  std::optional<Script> script_;
  LossyRule lossy_;
  Judge judge_;
  SamplingParams at_one_;  // A greedy sequence's at temperature 1 (DistributionAt).
  Sampler sampler_;
  std::vector<Token> prepared_;  // Reused between rounds.
  std::vector<float> raised_;    // A row of logits; likewise.
};

/// Gives up what a pass has computed of a sequence: rows of proposals, now or earlier, may have
/// made its logits NaN, and not the accepted path. The next pass is without a proposal.
void TakeBack(KvMemory memory, Sequence* sequence);

/// Commits what Verify found: the emitted tokens, cut where the sequence ends, the KV of the
/// accepted path, and the counts of both.
void CommitOutcome(KvMemory memory, Sequence* sequence);

}  // namespace foretoken
