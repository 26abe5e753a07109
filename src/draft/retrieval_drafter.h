#pragma once

#include "draft/drafter.h"
#include "draft/retriever.h"
#include "draft/sequence_tries.h"

namespace foretoken {

/// SSSD: candidates from prompt, output and the request's datastore, as one tree.
class RetrievalDrafter : public Drafter {
 public:
  /// With `knee_rows` > 0 proposals are no longer than SpeculationLength allows for the sequences
  /// that are proposed for together; with 0 only their lookahead limits them.
  explicit RetrievalDrafter(int knee_rows = 0) : knee_rows_(knee_rows) {}

  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override { tries_.Forget(sequence); }

 private:
  int knee_rows_;
  SequenceTries tries_;
  Retriever retriever_;
};

}  // namespace foretoken
