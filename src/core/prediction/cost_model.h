#pragma once

#include <algorithm>
#include <optional>

#include "base/static_vector.h"
#include "core/prediction/branch_rows.h"
#include "core/prediction/hit_curve.h"
#include "core/prediction/time_table.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// How a draft model's passes say a proposal: what of ParallelSpec its cost depends on.
struct DraftPassShape {
  int positions = 1;  ///< Tokens that a pass says, at most; 1: those of one depth.
  int block = 0;      ///< Rows of a pass, however few tokens are wanted; 0: a row each.
  /// Rows behind an outcome begin at the root of what is verified, whose states are there, and say
  /// the fewer tokens the deeper the outcome lies.
  bool from_root = false;

  bool several() const { return positions > 1; }
  /// Tokens of a chain that is planned to have `lookahead`.
  int Longest(int lookahead) const {
    return several() ? std::min(lookahead, positions) : lookahead;
  }
  /// How many passes a chain of `lookahead` tokens takes.
  int Count(int lookahead) const { return several() ? 1 : lookahead; }
  /// How many rows each pass of such a chain has.
  int Rows(int lookahead) const { return block > 0 ? block : several() ? Longest(lookahead) : 1; }
  /// Tokens that a chain behind an outcome at `depth` has at most.
  int LongestBehind(int depth, int lookahead) const {
    return from_root ? std::min(lookahead, std::max(positions - 1 - depth, 0)) : Longest(lookahead);
  }

  bool operator==(const DraftPassShape&) const = default;
};

/// What one way of proposing gives.
struct ProposerModel {
  static constexpr int kMaxPositions = 16;

  /// [k]: P(token k + 1 accepted | the first k were); the last value holds beyond. Empty: not
  /// measured, so nothing is predicted with it.
  StaticVector<double, kMaxPositions> acceptance;
  double coverage = 1;  ///< P(it proposes anything at all).
  /// Rows of a proposal, whatever the lookahead; 0: a chain, as many as that.
  double mean_rows = 0;
  /// Time for one sequence's proposal on the target's cores. Of the draft model on its own device:
  /// of one row, beside its pass (choosing candidates, handing them over).
  double us = 0;
  HitCurves curves;  ///< The hit rates of the speculation cache while such a proposal is verified.

  bool measured() const { return !acceptance.empty(); }
};

/// A draft model's passes; times are empty where they were not measured.
struct DraftTimes {
  TimeTable apart;      ///< On the draft's own device (SSD).
  TimeTable on_target;  ///< On the target's device (SD).
  DraftPassShape pass;  ///< On either.
  /// Whose tokens it proposes: of stages those of the first; none: its own.
  std::optional<DrafterId> tokens_of;
};

/// What is known about a machine, a pair of models and their traffic: everything that Predict
/// needs.
struct CostModel {
  TimeTable target;
  /// The times of draft models and, as those of the model that is helped, of stages.
  ByDrafter<DraftTimes> drafts;
  double host_us = 0;      ///< The time of a round beside the passes.
  double host_row_us = 0;  ///< The time for each row beside the passes: choosing its token.
  /// Each further sequence of a pass, beyond its rows, per token of its context: its keys and
  /// values are read too.
  double sequence_token_us = 0;
  /// The target's passes while the draft's device works too, by row count; empty where only
  /// target_contention is known.
  TimeTable target_beside_draft;
  /// How much slower a pass is while the other device works too (they share bandwidth); >= 1.
  double target_contention = 1;
  double draft_contention = 1;
  /// The most branch rows in a draft pass; 0: any number.
  int draft_rows_per_pass = kBranchRowsPerPass;

  /// By mode: what measured speeds were times what was predicted; 1 where nothing was compared.
  ByMode<double> correction = NoCorrection();

  ByDrafter<ProposerModel> proposers;  ///< What each drafter gives.

  /// What a target pass over `sequences` sequences takes beyond the same rows of one.
  double FurtherSequencesUs(int sequences, double context) const {
    return (sequences - 1) * context * sequence_token_us;
  }

  /// Whose tokens `drafter` proposes.
  DrafterId TokensOf(DrafterId drafter) const {
    return drafts[drafter].tokens_of.value_or(drafter);
  }
  /// Whether `mode` drafts by a model's passes: a draft model, or one with others' help.
  bool DraftsByPasses(Mode mode) const {
    return NeedsDraft(mode) || (mode.before() && !drafts[mode.drafter].on_target.rows().empty());
  }
  /// Whether `mode` drafts by a model's passes on the target's device.
  bool DraftsOnTarget(Mode mode) const { return mode.before() && DraftsByPasses(mode); }

  /// The times of the first draft model, the only one that calibrations and simulations have.
  DraftTimes& first_draft() { return drafts[DrafterId::kModel]; }
  const DraftTimes& first_draft() const { return drafts[DrafterId::kModel]; }
  const ProposerModel& draft_model() const { return proposers[DrafterId::kModel]; }
  /// What `fallback` proposes with; null for kNone and kAuto.
  const ProposerModel* proposer(Fallback fallback) const {
    if (fallback == Fallback::kJit) return &draft_model();
    return fallback.kind == Fallback::Kind::kDrafter ? &proposers[fallback.drafter] : nullptr;
  }
  /// What `mode` proposes with; null for kAr and where nothing is predicted: baselines and auto.
  const ProposerModel* proposer(Mode mode) const {
    return mode.drafts() && !InfoOf(mode.drafter).baseline ? &proposers[mode.drafter] : nullptr;
  }

  static constexpr ByMode<double> NoCorrection() {
    ByMode<double> ones;
    ones.fill(1);
    return ones;
  }
};

}  // namespace foretoken
