#pragma once

#include <unordered_map>
#include <vector>

#include "core/draft/drafter.h"
#include "core/draft/retrieval/retriever.h"
#include "core/draft/retrieval/sequence_tries.h"
#include "core/draft/retrieval/track_record.h"

namespace foretoken {

/// SSSD: candidates from prompt, output and the request's datastore, as one tree. Where rows have
/// a price, only those candidates whose like came true often enough to be worth it.
class RetrievalDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override;

  /// The scores of the last context's candidates as retrieved, in their order: the proposal's where
  /// rows have no price.
  std::span<const CandidateScore> scores() const { return retriever_.scores(); }

 private:
  void ProposeAtPrice(const InputTrie& input, SegmentList segments, const DraftContext& context);

  SequenceTries tries_;
  Retriever retriever_;
  TrackRecord record_;  // How often candidates came true in all sequences.
  std::unordered_map<SequenceId, Forecast> forecasts_;
  std::vector<double> least_;
};

}  // namespace foretoken
