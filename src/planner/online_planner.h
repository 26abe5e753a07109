#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "prediction/estimates.h"
#include "prediction/plan_search.h"

namespace foretoken {

/// What the planner may decide for sequences of mode auto. Limits that leave one plan leave it the
/// shape of the fan-out.
struct PlannerSettings {
  PlanLimits limits;                         ///< Modes, K, B and fallbacks to choose among.
  FanoutRule fanout = FanoutRule::kPlanned;  ///< Not kGiven.
};

/// What is known of one sequence's traffic beyond everybody's; a part of the sequence.
struct SequenceEstimate {
  SpeculationPlan wanted;  ///< The open plan that the planner fills in.
  double trials = 0;       ///< Of proposal tokens, faded.
  double accepted = 0;
  int rounds = 0;
  double predicted = 0;   ///< Tokens/s of the batch by the last plan, before correction ...
  Workload predicted_at;  ///< ... of this batch.
};

/// A target pass in which nothing was prefilled, and the round around it.
struct PassObservation {
  int sequences = 1;
  int rows = 1;
  double context = 0;  ///< Mean over the sequences.
  double pass_us = 0;
  double wait_us = 0;        ///< For proposals.
  double host_us = 0;        ///< The rest of the round.
  int tokens = 1;            ///< Emitted by all sequences together.
  int lookahead = 0;         ///< K, where `mode` is set.
  std::optional<Mode> mode;  ///< Of all sequences; none where they differ.
  bool draft_busy = false;   ///< Some sequence speculates on another device (SSD).
  /// Means of SequenceEstimate's over the sequences for which plans are made; 0: there are none.
  double predicted = 0;
  Workload predicted_at;
  bool chosen = false;  ///< The mode was this planner's choice.
  int rounds = 1;       ///< Rounds that this one stands for: the others were alike.
};

/// How a sequence's proposal fared.
struct ProposalObservation {
  Mode mode = Mode::kAr;
  ProposalSource source = ProposalSource::kNone;
  int proposed = 0;  ///< Tokens along the proposal's main path.
  int accepted = 0;
  int fanout = 0;           ///< F_k at the outcome node.
  std::optional<bool> hit;  ///< Of the speculation cache.
};

/// What planning has done so far.
struct PlannerReport {
  struct OfMode {
    std::int64_t rounds = 0;
    double tokens_per_second = 0;  ///< Measured, faded.
    double predicted = 0;          ///< Over the same rounds.
    double correction = 1;         ///< Applied to predictions of the mode.
  };
  std::array<OfMode, kModes> modes;
  std::int64_t replans = 0;
  std::int64_t switches = 0;  ///< Of mode.
  double replan_us = 0;       ///< Mean time of one.
};

/// The planner at run time: learns a CostModel from the rounds of all sequences, corrects what it
/// predicts by what it then measures, and re-plans each sequence now and then.
///
/// Exploration needs no dice: where plain decoding seems best, a sequence tries what would be
/// better still if acceptance, hits and speed were as good as what was seen leaves possible, and
/// where that is still so after some rounds, all sequences do for a while. What is not observed
/// fades, so a mode that lost is tried again after some thousand rounds, and dropped within some
/// ten. Lookaheads whose rows were not seen beside the draft are tried likewise.
/// Nor can it cost much: what speculation has lost against plain decoding is kept as a debt that
/// only time and success pay off, and beyond a limit of it everything decodes plainly, until there
/// is room for another attempt. A little of what it has gained is kept as well, against bad luck.
/// One owner; allocates nothing after construction.
class OnlinePlanner {
 public:
  /// `prior`: the passes' times as measured before serving; its proposers are replaced by priors
  /// of what is to be observed where they are not measured.
  OnlinePlanner(const CostModel& prior, const PlannerSettings& settings);

  /// The plan of a sequence about which nothing is known yet and which leaves `wanted` open: mode
  /// auto, or mode ssd whose K, B and C stay while the fan-out, the fallback or both are planned.
  SpeculationPlan FirstPlan(const SpeculationPlan& wanted, const Workload& load,
                            SequenceEstimate* sequence);

  void ObservePass(const PassObservation& pass);
  /// Passes of the draft on its own device (SSD), beside a round, in the mean: rows, tokens that
  /// they attend to, and time with all that belongs to them.
  void ObserveDraft(double rows, double context, double us);
  void ObserveProposal(const ProposalObservation& proposal, SequenceEstimate* sequence);

  /// The plan from now on: often `current`. Cheap when it is too early for another look.
  SpeculationPlan Replan(const SpeculationPlan& current, const Workload& load,
                         SequenceEstimate* sequence);

  /// What is believed now.
  CostModel Model(const SequenceEstimate& sequence) const;
  PlannerReport Report() const;

 private:
  /// One source of proposals, as observed.
  struct Source {
    AcceptanceEstimate acceptance{0.7};
    HitEstimate partial{{.c = 0.5, .r = 0.5}};
    HitEstimate full{{.c = 0.35, .r = 0.7}};
    FadingMean coverage{0.5, 8};
    double us = 0;

    void Fade(double keep);
  };
  struct Progress {
    double tokens = 0;
    double us = 0;
    double predicted_tokens = 0;
    std::int64_t rounds = 0;

    void Fade(double keep);
    /// For predictions of the mode, and its standard deviation.
    double correction() const;
    double doubt() const;
  };
  static RowRatios FirstContention(const CostModel& prior);
  // What rounds teach (online_planner_learning.cc).
  Source* SourceOf(ProposalSource source);
  // A pass without contention, as is believed.
  double PassUs(double rows, const Workload& load) const;
  // Of the draft for a round of mode sd.
  double DraftingUs(const PassObservation& pass, const Workload& load) const;
  // What a sequence of a batch would take for the observed round if the batch had been another.
  double UsPerSequence(const PassObservation& pass, const Workload& load) const;
  double UsualRoundUs(const PassObservation& pass) const;
  // `pass_us`: without what further sequences cost beyond their rows.
  void ObserveContention(const PassObservation& pass, double pass_us);
  void KeepAccounts(const PassObservation& pass, double round_us);
  // Plans.
  bool TimeForAnotherLook(const SpeculationPlan& current, const SequenceEstimate& sequence,
                          const Workload& load);
  SpeculationPlan Start(const CostModel& model) const;
  RankedPlan Climb(const CostModel& model, const Workload& load) const;
  RankedPlan FillIn(const CostModel& model, const SpeculationPlan& wanted,
                    const Workload& load) const;
  std::optional<SpeculationPlan>& LastPlan(const Workload& load);
  bool Follows() const;
  void Reshape(const CostModel& model, const SpeculationPlan& wanted, SpeculationPlan* plan) const;
  static ProposerModel Describe(const Source& source, double tilt);
  bool MustDecodePlainly(const SpeculationPlan& wanted) const;
  static RankedPlan Plainly(const CostModel& model, const Workload& load);
  // Tokens/s of sequences that change from `current` to `next`, over all that is left of them.
  double RateFrom(Mode current, const RankedPlan& next, const Workload& load) const;
  // Looks and trials (online_planner_trials.cc).
  RankedPlan LookAround(const CostModel& model, const SpeculationPlan& current,
                        const Prediction& now, const Workload& load);
  // What would be if what is not known well were as good as it may be.
  CostModel Hoped(const CostModel& model) const;
  // What a sequence that leads the others should try in place of `next`, the best as far as is
  // known. What may be faster than plain decoding is tried by one sequence, which costs little;
  // what then may still be, by all for a while, since only that shows how fast it is.
  std::optional<SpeculationPlan> WorthTrying(const CostModel& model, const SpeculationPlan& current,
                                             const RankedPlan& next, const Workload& load);
  bool TriedByAll() const;
  // Beside `best`, of SSD, which all sequences use.
  std::optional<SpeculationPlan> WorthExploring(const CostModel& model, const SpeculationPlan& best,
                                                const Workload& load) const;

  PlannerSettings settings_;
  CostModel prior_;
  TimeEstimate target_;
  TimeEstimate draft_alone_;  // On its own device.
  TimeEstimate draft_on_target_;
  RowRatios contention_;  // How much longer passes take beside the draft.
  int idle_passes_ = 0;   // Seen while no draft was busy.
  FadingMean host_us_;
  Source draft_;
  Source ngram_;
  Source retrieval_;
  Source random_;
  std::array<Progress, kModes> progress_{};
  double now_us_ = 0;   // Decoding time observed so far.
  double debt_us_ = 0;  // Lost to modes that were slower than plain decoding would have been.
  bool indebted_ = false;
  double next_look_us_ = 0;
  // When: the first sequence of a round looked around; a look was due; the batch came to its level.
  double looked_around_us_ = -1;
  double looked_us_ = -1;
  double level_us_ = -1;
  double explored_us_ = -1;  // Or chose rows to see how long they take.
  int level_ = -1;
  int rounds_since_trial_ = 0;            // Since one began; rounds that count.
  std::optional<SpeculationPlan> tried_;  // By a sequence, then by all.
  int rounds_since_switch_;               // Below 0: the draft still reads, at most so long.
  // What was chosen last in mode auto, for batches of 1, 2, 4, 8 ... sequences.
  std::array<std::optional<SpeculationPlan>, 9> last_plans_;
  double replan_us_ = 0;
  std::int64_t replans_ = 0;
  std::int64_t switches_ = 0;
};

}  // namespace foretoken
