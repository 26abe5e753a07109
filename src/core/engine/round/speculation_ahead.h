#pragma once

#include <memory>

#include "core/engine/round/drafters.h"
#include "core/engine/round/round.h"
#include "core/planner/retrieval_worth.h"
#include "core/ssd/speculator_client.h"

namespace foretoken {

/// Mode ssd in a round: what the speculator has prepared for the outcomes of a pass, and what is
/// proposed where it has not. Owns the engine's end of the speculator.
class SpeculationAhead {
 public:
  /// `taps`, which the target's passes keep, outlive it; null: there are none. The draft reads
  /// `part` of each; of width 0: nothing.
  SpeculationAhead(std::unique_ptr<SpeculatorClient> speculator, const TapStore* taps, TapPart part)
      : speculator_(std::move(speculator)), taps_(taps), part_(part) {}

  /// From now on the speculator works ahead of the sequence, or no longer. Where the draft reads
  /// taps it cannot before the prompt's are there.
  void Open(Sequence* sequence);
  void Close(Sequence* sequence);

  /// Works with another speculator from here on, while no sequence is open, and gives back the one
  /// that there was.
  void Exchange(std::unique_ptr<SpeculatorClient>* speculator, TapPart part) {
    speculator_.swap(*speculator);
    part_ = part;
  }

  /// Before a pass: restarts a lost speculator, and waits for the proposals that were asked for
  /// just in time.
  void AwaitProposals(const RunningSet& running);

  /// As a pass begins: tells the speculator what retrieval expects beside the proposals.
  void SendRetrieved(const Round& round, const RunningSet& running, Drafters* drafters);

  /// As a pass ends: takes in what the speculator has prepared. Returns what its own passes took.
  DraftPasses TakeNews();

  /// Looks every outcome of the pass up, lets the fallbacks propose for the misses and tells the
  /// speculator.
  void AnswerOutcomes(const Round& round, const RunningSet& running, Drafters* drafters);

  void ObserveRound(const Round& round);

  const SpeculatorClient& speculator() const { return *speculator_; }

 private:
  void Heal(const RunningSet& running);
  bool TakeAwaited(const RunningSet& running);
  void LookUp(Sequence* sequence);
  void Dispatch(Sequence* sequence, bool wants_jit);

  TapRows RowsOf(const Sequence& sequence) const {
    return {part_.width > 0 ? taps_ : nullptr, &sequence.kv, part_};
  }
  LiveSequence Describe(const Sequence& sequence) const;

  std::unique_ptr<SpeculatorClient> speculator_;
  const TapStore* taps_;
  TapPart part_;
  RetrievalWorth worth_{0.1};  // The worth of asking retrieval for the speculation cache.
  Proposal retrieved_;         // Reused between rounds.
};

}  // namespace foretoken
