#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/planner/learned_model.h"
#include "core/planner/loss_budget.h"
#include "core/planner/mode_records.h"
#include "core/planner/observations.h"
#include "core/planner/open_plan.h"
#include "core/planner/replan_schedule.h"
#include "core/planner/trial.h"
#include "core/planner/warm_up.h"

namespace foretoken {

/// The planner at run time: learns a CostModel from the rounds of all sequences (LearnedModel) and
/// re-plans each sequence now and then (ReplanSchedule), after what is predicted to be fastest or
/// what is worth a Trial. Where plain decoding seems best a mode that lost is thereby tried again
/// after some thousand rounds, and dropped within some ten. Nor can that cost much: beyond a limit
/// of what speculation may lose (LossBudget) everything decodes plainly.
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
  /// See LearnedModel.
  void ObserveDraft(double rows, double context, double us) {
    learned_.ObserveDraft(rows, context, us);
  }
  void ObserveProposal(const ProposalObservation& proposal, SequenceEstimate* sequence) {
    learned_.ObserveProposal(proposal, sequence);
  }

  void ObserveAsking(DrafterId drafter, double us) { learned_.ObserveAsking(drafter, us); }

  /// The plan from now on: often `current`. Cheap when it is too early to replan.
  SpeculationPlan Replan(const SpeculationPlan& current, const Workload& load,
                         SequenceEstimate* sequence);

  /// What is believed now.
  CostModel Model(const SequenceEstimate& sequence) const { return learned_.Model(sequence); }
  PlannerReport Report() const;

 private:
  struct Choice {
    RankedPlan next;
    bool is_trial_of_one = false;  // If true, `next` is for one sequence; the batch keeps its plan.
  };
  std::optional<SpeculationPlan>& LastPlan(const Workload& load);
  // Whether speculation has lost so much that everything must decode plainly, where modes allow it.
  bool MustDecodePlainly() const { return MayDecodePlainly() && loss_budget_.exceeded(); }
  bool MayDecodePlainly() const;
  // Whether `sequences` may change from mode `current` to `next` with what they may yet lose.
  bool Affords(Mode current, Mode next, const Workload& load, int sequences) const;
  // Whether to change from `usual`, for a sequence that is in mode `current`.
  bool IsBetter(const RankedPlan& best, const RankedPlan& usual, Mode current,
                const Workload& load) const;
  // Chooses what a plan leaves open where its mode is not open.
  RankedPlan ChooseOpenPart(const CostModel& model, const SpeculationPlan& current,
                            const SpeculationPlan& wanted, const Workload& load) const;
  Choice ChooseMode(const CostModel& model, const SpeculationPlan& current, const Workload& load);
  // The best plan of each mode for the batch that there was last, in words.
  std::string Reason() const;
  // The best plan for a sequence that is due, before trials: for the first of a round the best of
  // its neighbours, for the others its own or what was chosen last.
  RankedPlan FindBetterPlan(const CostModel& model, const RankedPlan& now, const Workload& load);

  PlannerSettings settings_;
  LearnedModel learned_;
  LossBudget loss_budget_;
  WarmUp warm_up_;
  ReplanSchedule replan_schedule_;
  Trial trial_;
  // What was chosen last in mode auto, by BatchLevel.
  std::array<std::optional<SpeculationPlan>, kBatchLevels> last_plans_;
  Workload load_{.batch = 0};  // The workload of the last plan; 0 sequences: there was none.
  std::int64_t switches_ = 0;
};

}  // namespace foretoken
