#pragma once

#include <optional>

#include "core/prediction/estimates.h"
#include "core/prediction/predict.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// What is known of one sequence's traffic beyond everybody's; a part of the sequence.
struct SequenceEstimate {
  SpeculationPlan wanted;  ///< The open plan that the planner fills in.
  ByDrafter<DecayingSum>
      accepted;  ///< Outcomes of a draft model's tokens, 1 where one was accepted.
  int rounds = 0;
  double predicted = 0;   ///< Tokens/s of the batch by the last plan, before correction.
  Workload predicted_at;  ///< The batch that `predicted` is for.
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
  std::optional<Mode> mode;  ///< The mode of all sequences; none where they differ.
  bool draft_busy = false;   ///< Some sequence speculates on another device (SSD).
  /// Means of SequenceEstimate's over the sequences for which plans are made; 0: there are none.
  double predicted = 0;
  Workload predicted_at;
  bool chosen = false;     ///< The mode was this planner's choice.
  bool disturbed = false;  ///< Other programs held the pass up: its times teach nothing.
  int rounds = 1;          ///< Rounds that this one stands for: the others were alike.

  Workload load() const { return {.batch = sequences, .context = context}; }
};

/// How a sequence's proposal fared.
struct ProposalObservation {
  Mode mode = Mode::kAr;
  ProposalSource source = ProposalSource::kNone;
  int proposed = 0;  ///< Tokens along the proposal's main path.
  int accepted = 0;
  int rows = 0;    ///< The rows of the proposal, along all paths.
  int fanout = 0;  ///< F_k at the outcome node.
  /// Whether the speculation cache had the outcome; none where it was not asked.
  std::optional<bool> hit;
};

}  // namespace foretoken
