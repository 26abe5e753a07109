#pragma once

#include "core/planner/mode_records.h"
#include "core/planner/observations.h"
#include "core/prediction/cost_model.h"
#include "core/prediction/estimates.h"
#include "core/prediction/plan_search.h"

namespace foretoken {

/// What is believed: a CostModel, learned from the rounds of all sequences. What is not observed
/// decays to priors. One owner; allocates nothing after construction.
class LearnedModel {
 public:
  /// `prior`: the passes' times as measured before serving; its proposers are replaced by priors
  /// of what is to be observed.
  explicit LearnedModel(const CostModel& prior);

  /// `round_us`: its UsualRoundUs; `warmed_up`: the round measures the speed of its mode (WarmUp).
  void ObservePass(const PassObservation& pass, double round_us, bool warmed_up);
  /// Passes of the draft on its own device (SSD), beside a round, in the mean: rows, tokens that
  /// they attend to, and time with all that belongs to them.
  void ObserveDraft(double rows, double context, double us);
  void ObserveProposal(const ProposalObservation& proposal, SequenceEstimate* sequence);
  /// A drafter of texts took so long to propose for one sequence.
  void ObserveAsking(DrafterId drafter, double us);

  /// What is believed now, of this sequence.
  CostModel Model(const SequenceEstimate& sequence) const;
  /// What would be if what is not known well were as good as it may be.
  CostModel Hoped(const CostModel& model) const;
  /// What would be if rows that were not seen beside the draft took a little less than believed.
  CostModel WithCheaperUnseenRows(const CostModel& model) const;

  /// The round's time if the pass took what is expected of it. How much longer it did says nothing
  /// about its mode: the estimated times follow it, for all modes. (When that counted too, every
  /// slower second of the machine made the mode of that second seem slow for long.)
  double UsualRoundUs(const PassObservation& pass) const;
  /// The time of a round that decodes plainly.
  double PlainRoundUs(const Workload& load) const;
  /// What sequences that change from `current` to `next` wait, each, while a draft reads their
  /// contexts on the target's device. On its own it reads beside the target, which goes on.
  double ReadingUs(Mode current, Mode next, const Workload& load) const;
  /// Tokens/s of sequences that change from `current` to `next`, over all that is left of them.
  double RateFrom(Mode current, const RankedPlan& next, const Workload& load) const;

  const ModeRecords& records() const { return records_; }

 private:
  /// A drafter's proposals, as observed.
  struct Source {
    AcceptanceEstimate acceptance{0.5};
    DecayingMean us{0, 1};  // For one sequence; not of draft models.
    DecayingMean coverage{0.5, 8};
    DecayingMean rows{2, 8};  // The rows of a proposal.
    HitEstimate partial{{.c = 0.5, .r = 0.5}};
    HitEstimate full{{.c = 0.35, .r = 0.7}};
    // The times of a draft model's passes, on its own device and on the target's.
    TimeEstimate apart{TimeTable::Line(1, 0)};
    TimeEstimate on_target{TimeTable::Line(1, 0)};

    void Decay(double keep);
    /// All but the acceptance; `mean_rows` as ProposerModel's.
    ProposerModel Describe(double mean_rows) const;
    /// As good as what was seen leaves possible.
    void Hope(double optimism, ProposerModel* model) const;
  };

  static RowRatios FirstContention(const CostModel& prior);
  static ByDrafter<Source> FirstSources(const CostModel& prior);
  // A pass without contention, as is believed.
  double PassUs(double rows, const Workload& load) const;
  // The time that a draft model takes for a round in which it drafts before the pass.
  double DraftingUs(const PassObservation& pass, const Workload& load) const;
  // What a sequence of a batch would take for the observed round if the batch had been another.
  double UsPerSequence(const PassObservation& pass, const Workload& load) const;
  // `pass_us`: without what further sequences cost beyond their rows.
  void ObserveContention(const PassObservation& pass, double pass_us);
  void ObserveTimes(const PassObservation& pass, bool warmed_up);
  // What proposing took; of a round that measures the speed of its mode.
  void ObserveDrafting(const PassObservation& pass);

  CostModel prior_;
  TimeEstimate target_;
  RowRatios contention_;  // How much longer passes take beside the draft.
  int idle_passes_ = 0;   // Seen while no draft was busy.
  DecayingMean host_us_;
  ByDrafter<Source> sources_;
  ModeRecords records_;
};

}  // namespace foretoken
