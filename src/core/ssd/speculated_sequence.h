#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/draft/model/draft_model.h"
#include "core/sampling/history.h"
#include "core/speculation/proposal.h"
#include "core/ssd/messages.h"
#include "foretoken/constraint.h"

namespace foretoken {

/// Makes the constraint of a grammar; empty where there are none.
using CompileConstraint =
    std::function<Result<std::shared_ptr<TokenConstraint>>(std::string_view grammar)>;

/// A proposal being prepared for one outcome; its root is the bonus token. A ranked node's row
/// number is that of its scratch slot.
struct Branch {
  Outcome outcome;
  double weight = 0;  ///< Estimated probability of the outcome: the likeliest are drafted first.
  bool retrieved = false;  ///< The outcome is not the draft's idea but retrieval's.
  DraftTree tree;
};

/// A row that a sequence could use in the next draft pass, and the mask rows behind it where the
/// draft says several positions in a pass.
struct WantedRow {
  int branch = -1;   ///< Index into `branches`; -1: a node of the tree under verification.
  int node = 0;      ///< The node in the branch's tree, or in the one under verification.
  double value = 0;  ///< Estimated number of what it says that will have been of use.
  int depths = 1;    ///< How many depths it says something of, each in a row of logits.
  int rows = 1;      ///< How many rows it takes, mask rows included.
};

/// Scratch slots that a sequence's branches need.
int ScratchSlots(const ConfigureMessage& config, const ModelConfig& draft);

/// One sequence in the speculator: the tree under verification, what the draft would say after each
/// of its nodes, and the branches prepared for the outcomes.
class SpeculatedSequence {
 public:
  SpeculatedSequence(const OpenMessage& open, const ConfigureMessage& config,
                     const DraftModel& draft);

  /// Takes in prompt and output so far; complete() once all that was announced is here.
  void AddTokens(std::span<const Token> tokens, DraftModel& draft);
  /// Features of committed positions, for a draft that reads them.
  void AddFeatures(std::span<const BFloat16> numbers) { trunk.features.Append(numbers); }
  void AddBiases(std::span<const OpenBiasMessage::Bias> biases);
  /// Takes in a part of the constraint's grammar. Once all of it is here the history is constrained
  /// by it; `compiler` may be null: then it is not.
  void AddGrammar(std::span<const char> text, const CompileConstraint& compile);
  bool complete() const;

  /// The plan from the next round on.
  void SetPlan(const SpeculationPlan& plan) { next_plan_ = plan; }
  /// Moves on to the next round. If a branch was prepared for the outcome, its rows become those of
  /// the tree under verification, with their rankings.
  /// `rates` learns how good retrieval's ideas were.
  void Advance(const OutcomeMessage& outcome, DraftModel& draft, RetrievalRates* rates);

  /// Takes in what retrieval expects in this round. Branches at these nodes that no work has gone
  /// into are made anew.
  void TakeRetrieved(const OutcomeList& outcomes);

  /// Adds the rows that a just-in-time proposal grows by to the draft's batch, as
  /// DraftTrunk::AppendDraftRows does. False when it has all its nodes.
  bool AppendJitRows(DraftModel& draft, StaticVector<std::int8_t, kMaxProposal + 1>* nodes);
  /// The just-in-time proposal has all its nodes and is now the one under verification.
  void FinishJit();

  /// Makes branches for the outcomes at every ranked node that has none yet: F_k of the node's
  /// depth at a node with children, F_K at a leaf.
  void Expand(const DraftModel& draft, const RetrievalRates& rates);

  /// Appends the rows worth computing next, in no particular order; a node's comes after its
  /// parent's in value. Nothing while a just-in-time proposal grows.
  void AppendWanted(const DraftModel& draft, std::vector<WantedRow>* wanted) const;

  /// Appends that row to the draft's batch; `slot` is where a branch's row goes, and those behind
  /// it where its mask rows do. False when the pool has no room.
  bool AppendRow(DraftModel& draft, const WantedRow& wanted, int slot, RowPlacer* placer);
  /// How many depths the pass says something of that computes the root.
  int DepthsAtRoot(const DraftModel& draft) const;
  /// The scratch slots in use; the next ones are free for a pass's rows.
  int scratch_used() const { return scratch_used_; }

  /// The tokens from below the root of the tree under verification to what the row stands for.
  StaticVector<Token, 2 * kMaxProposal + 1> PathOf(const WantedRow& wanted) const;
  /// What is asked of the draft for the row; `path` is its PathOf.
  RankRequest RequestFor(const WantedRow& wanted, std::span<const Token> path) const;
  /// Stores what the row has said; a branch's lies in scratch slot `slot` now. Returns how many
  /// nodes the row's tree has grown by.
  int TakeRow(const WantedRow& wanted, int slot, const Ranking& ranking);
  /// The tree that it grows.
  const DraftTree& TreeOf(const WantedRow& wanted) const {
    return wanted.branch < 0 ? trunk.tree : branches[wanted.branch].tree;
  }
  /// The same of a node below the root of the row's tree, of which the row has said it.
  int TakeRootsRanking(const WantedRow& node, const Ranking& ranking);
  /// Before TakeRow: the state that the row has left, where the draft reads features.
  void TakeState(const WantedRow& wanted, int slot, const float* state);

  bool IsStop(Token token) const;

  SequenceId id = 0;
  std::uint32_t epoch = 0;
  const bool draws;         ///< Proposals are drawn, to be verified by rejection.
  bool jit = false;         ///< The engine waits for a proposal, which grows as the trunk's tree.
  SamplingParams sampling;  ///< Its constraint, if any, is in `history`.
  TokenHistory history;
  DraftTrunk trunk;  ///< With the tree under verification.
  SequenceKv scratch;
  std::vector<Branch> branches;

 private:
  // The branch's rows become those of the proposal's nodes. The root's own was made of a feature
  // that was not there yet, where the draft reads features, and is computed again.
  void Promote(const Branch& branch, const Proposal& proposal, DraftModel& draft);
  // The rows of a branch where features are what rows attend to: a block that begins at the root,
  // whose states are still to come, and goes on with what the outcome has in place of masks.
  void AppendBlock(DraftModel& draft, const WantedRow& wanted, int slot, RowPlacer* placer);
  // Depths that a pass can say below a branch that continues the tree at `node`.
  int DepthsBelow(int node, const DraftModel& draft) const;
  // The last nodes of `tree` that carry a stop token do not grow.
  void CloseStops(DraftTree* tree, int added) const;
  // What the row of a branch's node reads; nothing where the draft reads no features.
  RowFeature FeatureOf(const Branch& branch, int node) const;
  void EstimateReached();
  void AddBranch(const Branch& branch);
  void ExpandNode(int node, const RetrievalRates& rates);
  void ObserveRetrieved(Outcome outcome, RetrievalRates* rates) const;
  /// F_k of the tree under verification.
  const FanoutShape& fanout() const {
    return after_fallback_ ? plan_.after_fallback : plan_.primary;
  }

  OpenMessage announced_;
  SpeculationPlan plan_;
  SpeculationPlan next_plan_;
  RetrievedOutcomes retrieved_;
  std::size_t max_branches_;
  std::int32_t scratch_capacity_;
  bool after_fallback_ = true;  // The proposal under verification came from a fallback.
  std::vector<Token> opening_;  // Tokens of the Open records until all are here.
  std::string grammar_;         // The grammar's text until all of it is here.
  std::uint64_t expanded_ = 0;  // A bit for each node that has its branches.
  std::array<double, kMaxProposal + 1> reached_{};  // P(verification comes to the node).
  int scratch_used_ = 0;
  std::vector<Ranking> scratch_rankings_;  // By scratch slot.
  LeftStates scratch_left_;                // The states that rows have left, by scratch slot.
};

}  // namespace foretoken
