#pragma once

#include <memory>
#include <vector>

#include "core/draft/staged/stage.h"

namespace foretoken {

/// A stage that is no draft model: a drafter that follows committed texts. It is asked once for
/// each; behind drafted tokens the stage says what of that proposal goes on from there. Where it
/// does not, or there is nothing left of it, one that keeps nothing of texts is asked anew.
class TextStage final : public Stage {
 public:
  /// `keeps_nothing`: what the drafter proposes follows from its context's tokens alone.
  TextStage(std::unique_ptr<Drafter> drafter, bool keeps_nothing, int max_sequences);

  void Propose(std::span<DraftContext> contexts) override;
  void ProposeBehind(std::span<DraftContext> contexts, std::span<const int> drafted) override;
  void Observe(const VerifiedProposal& verified) override { drafter_->Observe(verified); }
  void Forget(SequenceId sequence) override;

 private:
  // What the drafter said behind the committed text of a sequence.
  struct Said {
    SequenceId sequence = 0;
    std::size_t committed = 0;  // Tokens of that text; 0: unused.
    Proposal proposal;
  };
  Said& SaidOf(SequenceId sequence);
  void Propose(DraftContext* context, int drafted);

  std::unique_ptr<Drafter> drafter_;
  const bool keeps_nothing_;
  std::vector<Said> said_;
};

}  // namespace foretoken
