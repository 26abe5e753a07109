#pragma once

#include "draft/drafter.h"
#include "draft/retriever.h"
#include "draft/sequence_tries.h"

namespace foretoken {

/// SSSD: candidates from prompt, output and the request's datastore, as one tree.
class RetrievalDrafter : public Drafter {
 public:
  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override { tries_.Forget(sequence); }

 private:
  SequenceTries tries_;
  Retriever retriever_;
};

}  // namespace foretoken
