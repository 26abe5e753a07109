#pragma once

#include <memory>
#include <vector>

#include "core/draft/model/model_drafter.h"
#include "core/draft/text/text_link.h"
#include "core/sampling/history.h"

namespace foretoken {

/// A draft model of any tokenizer (universal assisted generation; Timor et al. 2025, arXiv
/// 2502.05202, exact match of strings): reads the text of what was generated, goes on with the
/// tokens that it finds likeliest, and proposes what they say in the target's tokens, as a chain.
///
/// Noise is shared by tokens, of which the two have none in common: the draft takes its likeliest
/// token at any temperature. The chain is fixed by the text, so under rejection verification it is
/// a point mass. Encoding allocates.
class TextDrafter final : public Drafter {
 public:
  /// `parts.text` is there, and a draft that reads tokens alone.
  TextDrafter(DrafterId id, const DrafterParts& parts);

  void Propose(std::span<DraftContext> contexts) override;
  void Forget(SequenceId sequence) override;

 private:
  struct Slot {
    std::unique_ptr<DraftText> text;
    Proposal drafted;  // In the draft's tokens.
  };
  void Ask(const DraftContext& context, Slot* slot);
  void Translate(const DraftContext& context, const Slot& slot);

  const ProposalSource source_;
  const int vocabulary_;  // The target's.
  std::shared_ptr<const TextLink> link_;
  ModelDrafter drafter_;  // Drafts in the draft's own tokens.
  const SamplingParams greedy_;
  const TokenHistory history_;  // Empty: nobody's penalties are about the draft's tokens.
  SequenceSlots<Slot> slots_;
  std::vector<DraftContext> asked_;  // In the draft's tokens.
  std::vector<int> open_;            // How many of the last tokens of each of `asked_` may change.
};

}  // namespace foretoken
