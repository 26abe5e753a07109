#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/draft/retrieval/retrieval_drafter.h"
#include "core/engine/engine.h"
#include "core/engine/round/round.h"
#include "core/planner/retrieval_worth.h"
#include "core/prediction/row_price.h"

namespace foretoken {

/// How many tokens retrieval may propose for a plan, what each must be worth, and whether asking it
/// pays at all. `batch`: sequences that are decoded together.
class RetrievalBudget {
 public:
  /// `max_nodes`: that a proposal may have.
  RetrievalBudget(const MeasuredTimes& times, int max_nodes);

  /// What a row costs in the round of these sequences that begins; nothing where none asks.
  void SetPrices(const RunningSet& running);
  void SetPrices();

  /// The most tokens of a proposal by this plan, and the same after a miss of the cache too.
  int NodesOf(const SpeculationPlan& plan, int batch) const;
  int MostNodes(const SpeculationPlan& plan, int batch) const;
  /// s_q - 1: where retrieval proposes.
  int RetrievedNodes(const SpeculationPlan& plan, int batch) const;

  /// DraftContext's row_prices, valid until the next round: empty where the plan's proposals are of
  /// a given length.
  std::span<const double> PricesFor(const SpeculationPlan& plan) const;
  /// The same for a sequence beside which the others have so many rows; valid until the next call.
  std::span<const double> PricesBeside(const SpeculationPlan& plan, int other_rows);

  /// Takes out the contexts that are to be priced where it does not pay to ask retrieval now.
  void SpareUseless(std::vector<DraftContext>* contexts);
  /// Asking for so many sequences took that long.
  void ObserveAsking(std::int64_t ns, std::size_t sequences);
  void ObserveRound(const Round& round);

 private:
  double WorthOf(const Sequence& sequence) const;

  int max_nodes_;
  int knee_rows_;
  std::optional<RowPrice> row_price_;  // Where the target's passes were measured.
  // The prices of a proposal's first, second ... token in this round.
  std::vector<double> prices_;
  std::vector<double> prices_beside_;
  RetrievalWorth worth_{0.2};  // The worth of asking in mode sssd.
  bool asked_ = false;         // In this round, in mode sssd at a price.
};

/// The KV of the target's sequences, and who has room in it. Borrows both.
struct TargetRoom {
  KvStore* store = nullptr;  ///< Null: drafters are offered none.
  KvCache* cache = nullptr;
};

/// What proposes on the target's device, between two passes: the drafters of the modes, and those
/// that fill in after a miss of the speculation cache.
class Drafters {
 public:
  /// Adds to `before` what needs the text alone; baselines only as fallbacks. `taps`, which the
  /// target's passes keep, outlive it; null: none are kept. Each drafter reads its own of `parts`.
  /// Draft models are offered the KV of `target`.
  Drafters(DraftersById before, const RetrievalBudget& budget, const TapStore* taps,
           const ByDrafter<TapPart>& parts, int vocabulary, int max_batch, TargetRoom target = {});

  /// Whether there is a drafter for a mode that drafts before the pass: always, or never. Any
  /// thread.
  bool Has(DrafterId drafter) const { return has_[drafter]; }

  /// Proposals for all sequences that draft before the pass and whose prompt is computed.
  void Propose(const RunningSet& running);

  /// The shadow proposal of `drafter`, for a sequence that something else drafts for, as
  /// Sequence::shadow. `batch`: sequences that are decoded together.
  void ProposeShadow(DrafterId drafter, int batch, Sequence* sequence);

  /// Tells the drafter of a proposal what a pass said of it, before that is committed. `logits` are
  /// those of the whole pass.
  void Observe(Logits logits, const Sequence& sequence);
  /// Tells another one.
  void ObserveBy(DrafterId drafter, Logits logits, const Sequence& sequence);

  /// The proposal of a sequence whose outcome the speculation cache did not know, where its
  /// fallback gives one at once; else it stays empty.
  void ProposeOnMiss(const RunningSet& running, Sequence* sequence);

  /// Retrieves what may follow the sequence, beside its proposal, and returns how likely each token
  /// is; valid until the next call. `batch`: sequences that are decoded together.
  std::span<const CandidateScore> Retrieve(int batch, Sequence* sequence, Proposal* retrieved);

  /// Takes another drafter for those modes, before any sequence has begun with it, and gives back
  /// the one that there was.
  void Exchange(DrafterId id, std::unique_ptr<Drafter>* drafter) { before_[id].swap(*drafter); }

  /// The sequence has ended, or begins anew.
  void Forget(SequenceId sequence);
  /// A text has ended, whoever drafted for it.
  void Remember(const EndedText& text);

  /// What a drafter is told of a sequence among `batch`.
  DraftContext ContextFor(DrafterId drafter, int batch, Sequence* sequence) const {
    return ContextFor(drafter, sequence->plan, batch, sequence);
  }

  RetrievalBudget& budget() { return budget_; }

 private:
  DraftContext ContextFor(DrafterId drafter, const SpeculationPlan& plan, int batch,
                          Sequence* sequence) const;
  void ProposeWith(DrafterId drafter, const RunningSet& running);
  void OfferKv(Sequence* sequence, DraftContext* context);

  RetrievalBudget budget_;
  const TapStore* taps_;
  const ByDrafter<TapPart> parts_;
  const int vocabulary_;
  const TargetRoom target_;
  DraftersById before_;
  // Which drafters `before_` has, however often one is exchanged: other threads ask.
  ByDrafter<bool> has_{};
  DraftersById on_miss_;                // Fallbacks.
  RetrievalDrafter* retrieval_;         // The one of `on_miss_` that also tells of likely outcomes.
  std::vector<DraftContext> contexts_;  // Reused between rounds.
  // A sequence's sampling at temperature 0; reused between rounds.
  SamplingParams greedy_;
};

}  // namespace foretoken
