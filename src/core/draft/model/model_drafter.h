#pragma once

#include <memory>
#include <vector>

#include "core/draft/model/draft_model.h"
#include "core/draft/registry.h"
#include "core/draft/sequence_slots.h"
#include "core/draft/staged/stage.h"
#include "core/draft/staged/stage_worth.h"

namespace foretoken {

/// Speculative decoding's drafter: a draft model that proposes chains or trees, all sequences
/// together, one pass per level. Ranks its candidates under the target's own noise and sampler
/// options.
///
/// With a helper it proposes the chains that it would propose without, in fewer passes: the helper
/// guesses how the chain goes on, one pass says what the model itself has to say behind each of the
/// guesses, and those that agree are drafted. (Speculative decoding, one stage down.)
class ModelDrafter final : public Stage {
 public:
  /// `helper` may be null; with one, or as one, the model reads tokens alone and says one position
  /// in a pass (CanBeStage). `worth` says how much it is asked for.
  ModelDrafter(DrafterId id, const DrafterParts& parts, std::unique_ptr<Stage> helper = nullptr,
               StageWorth worth = StageWorth());

  void Propose(std::span<DraftContext> contexts) override;
  void ProposeBehind(std::span<DraftContext> contexts, std::span<const int> drafted) override;
  void Observe(const VerifiedProposal& verified) override;
  void Forget(SequenceId sequence) override;

  /// Passes that have drafted; those that only read contexts do not count.
  std::int64_t passes() const { return passes_; }

 private:
  struct Slot {
    DraftTrunk trunk;
    std::int32_t settled = 0;  // How many of the trunk's tokens nobody takes back.
    std::vector<Token> text;   // With what is drafted, for the helper.
  };
  DraftTrunk& TrunkOf(const DraftContext& context) { return slots_.For(context.sequence).trunk; }
  // The trunk's committed tokens become the context's.
  void Commit(const DraftContext& context, int drafted);
  // Room for the largest pass that drafts, where none that reads a context comes before it.
  void ReserveRows(std::span<const DraftContext> contexts);
  // Computes committed tokens of which there are too many for a pass that drafts.
  void ReadContexts(std::span<DraftContext> contexts);
  // Has the helper guess how the chains go on.
  void AskHelper(std::span<DraftContext> contexts);
  // The pass just made took that long.
  void ObservePass(std::int64_t ns);
  // Ranks the candidates after every node that the pass just made says something of, or draws them
  // and sets their distribution.
  void TakeRows(std::span<DraftContext> contexts, Logits logits);
  // The same, where the rows behind a chain's last node are those of guesses.
  void TakeGuessedRows(std::span<DraftContext> contexts, Logits logits);
  // A node, and the row of the pass that says what follows the root of what it belongs to.
  struct Asked {
    int context;
    int node;
    std::int64_t first;
    int depth;  // Below that root.
  };
  void Ask(std::span<const DraftContext> contexts, const Asked& asked);
  // Takes the answers for all nodes that were asked for.
  void TakeAnswers(std::span<DraftContext> contexts);
  // The ranking after one node of context number `i`.
  Ranking Rank(const DraftContext& context, int i, const Proposal& proposal, int node,
               const SaidRow& said);
  int WidthOf(const DraftContext& context) const {
    return helper_ == nullptr ? context.tree_width : 1;
  }

  const ProposalSource source_;
  std::shared_ptr<Model> model_;
  DraftModel draft_;
  SequenceSlots<Slot> slots_;
  // Contexts with rows in the current pass, and the nodes that drafting rows are of, in order.
  std::vector<int> drafting_;
  std::vector<TreeNodes> nodes_;
  std::vector<std::int64_t> firsts_;  // The first row of logits for each of `drafting_`.
  std::vector<Asked> asked_;
  std::vector<int> drafted_;  // How many of each context's last tokens are not committed.
  std::int64_t passes_ = 0;

  std::unique_ptr<Stage> helper_;
  StageWorth worth_;
  std::vector<DraftContext> helper_contexts_;
  std::vector<int> helper_drafted_;
  std::vector<Proposal> guesses_;           // Behind each context's chain.
  DraftDistributions guess_distributions_;  // Which nobody reads.
};

/// Whether a draft of this kind can be a stage, or have a helper: what its rows compute follows
/// from tokens alone, and each says one position.
inline bool CanBeStage(const ModelConfig& draft) {
  return !draft.feature.there() && draft.parallel.positions == 1;
}

}  // namespace foretoken
