#pragma once

#include <initializer_list>
#include <numeric>
#include <random>

#include "core/planner/online_planner.h"
#include "core/speculation/modes_testing.h"

namespace foretoken {

/// A machine and its models as they really are, which the planner sees only by its rounds.
struct World {
  double acceptance = 0.8;
  double hit = 0.85;
  double target_us = 1000;
  double target_row_us = 20;
  double draft_us = 100;
  double second_acceptance = 0;  // The acceptance of a second draft, which drafts in mode sd2.
  double second_us = 0;
  double ngram_acceptance = 0.1;
  double staged_us = 0;  // The time of a drafted token with the help of further stages.
  // An ensemble of texts: how often it proposes, and so many rows.
  double ensemble_coverage = 0;
  double ensemble_acceptance = 0;
  int ensemble_rows = 4;
  double ensemble_us = 2;
  double contention = 1.05;
  // The time of a token of the context that a draft reads first, on the target's device, for either
  // draft; and how many rounds a sequence has (0: it has no end).
  double draft_read_us = 0;
  double second_read_us = 0;
  int sequence_rounds = 0;
  double swing = 0;  // Acceptance is higher and lower by this in turns of 50 rounds.
  unsigned seed = 7;
};

/// Rounds of one sequence in such a world, planned by an OnlinePlanner.
class Simulation {
 public:
  Simulation(const World& world, const PlannerSettings& settings,
             const SpeculationPlan& wanted = {.mode = Mode::kAuto})
      : world_(world), planner_(Prior(world), settings), random_(world.seed) {
    Begin(wanted);
  }

  World& world() { return world_; }
  const SpeculationPlan& plan() const { return plan_; }
  const OnlinePlanner& planner() const { return planner_; }

  // Returns tokens per microsecond, and how often each mode was used.
  double Run(int rounds) {
    uses_ = {};
    double tokens = 0;
    double us = 0;
    for (int i = 0; i < rounds; ++i) Round(&tokens, &us);
    return tokens / us;
  }
  double share(Mode mode) const {
    const int all = std::accumulate(uses_.begin(), uses_.end(), 0);
    return static_cast<double>(uses_[mode]) / all;
  }

  // What AR does in this world.
  double ArRate() const { return 1 / (world_.target_us + world_.target_row_us + kHostUs); }

 private:
  static constexpr Workload kLoad{.batch = 1, .context = 200};
  static constexpr double kHostUs = 10;

  void Begin(SpeculationPlan wanted) {
    sequence_ = {};
    load_.context = kLoad.context;
    if (world_.sequence_rounds > 0) load_.tokens_left = world_.sequence_rounds;
    plan_ = planner_.FirstPlan(wanted, load_, &sequence_);
    drafting_ = Mode::kAr;
  }

  // The times of a draft that takes so long for a row, and reads so fast.
  static TimeTable Draft(double us, double read_us) {
    if (read_us == 0) return TimeTable::Line(us, 2);
    constexpr int kRows[] = {1, 2, 32};
    constexpr int kContexts[] = {1};
    const double times[] = {us, us + 2, std::max(us + 4, 32 * read_us)};
    return *TimeTable::Make(kRows, kContexts, times);
  }

  static CostModel Prior(const World& world) {
    CostModel prior;
    prior.target = TimeTable::Line(world.target_us, world.target_row_us);
    prior.first_draft().apart = Draft(world.draft_us, world.draft_read_us);
    prior.first_draft().on_target = Draft(world.draft_us, world.draft_read_us);
    prior.drafts[DrafterId::kModel2].on_target = Draft(world.second_us, world.second_read_us);
    if (world.staged_us > 0) {  // As if nobody helped.
      prior.drafts[DrafterId::kStaged] = {.apart = {},
                                          .on_target = prior.first_draft().on_target,
                                          .pass = {},
                                          .tokens_of = DrafterId::kModel};
    }
    prior.host_us = kHostUs;
    return prior;
  }

  double AcceptanceOf(Mode mode) const {
    if (mode == Mode::kNgram) return world_.ngram_acceptance;
    if (mode == kSd2) return world_.second_acceptance;
    if (mode == kEnsemble) return world_.ensemble_acceptance;
    return world_.acceptance + (rounds_ / 50 % 2 == 0 ? world_.swing : -world_.swing);
  }
  // The target waits for a proposal, since its outcome was not prepared.
  bool IsJit() const {
    return plan_.mode == Mode::kSsd && !hit_ && unread_ < 0 && plan_.fallback == Fallback::kJit;
  }

  // What the draft takes for a context that it has not read yet: it does not keep up beside others.
  double ReadingUs() {
    const bool reads = plan_.mode != drafting_ && DraftsOnTarget(plan_.mode);
    drafting_ = plan_.mode;
    if (!reads) return 0;
    return load_.context * (plan_.mode == kSd2 ? world_.second_read_us : world_.draft_read_us);
  }
  double DraftingUs() const {
    if (plan_.mode == kEnsemble) return world_.ensemble_us;
    if (plan_.mode == kStaged) return plan_.lookahead * world_.staged_us;
    if (!DraftsOnTarget(plan_.mode) && !IsJit()) return 0;
    return plan_.lookahead * (plan_.mode == kSd2 ? world_.second_us : world_.draft_us);
  }
  int Proposed(Mode mode) {
    if (mode == Mode::kAr || (mode == Mode::kSsd && !hit_ && !IsJit())) return 0;
    if (mode != kEnsemble) return plan_.lookahead;
    return Chance(world_.ensemble_coverage) ? world_.ensemble_rows : 0;
  }

  bool Chance(double p) { return std::uniform_real_distribution<>()(random_) < p; }

  void Round(double* tokens, double* us) {
    const Mode mode = plan_.mode;
    if (mode == Mode::kSsd && drafting_ != mode) {  // It reads beside the target.
      unread_ = static_cast<int>(load_.context * world_.draft_read_us / world_.target_us);
      hit_ = false;
    }
    ++uses_[mode];
    ProposalObservation proposal{.mode = mode};
    proposal.proposed = proposal.rows = Proposed(mode);
    const double a = AcceptanceOf(mode);
    ++rounds_;
    while (proposal.accepted < proposal.proposed && Chance(a)) ++proposal.accepted;
    if (proposal.proposed > 0) {
      proposal.source = mode != Mode::kSsd ? ProposalSource::Of(mode.drafter)
                        : hit_             ? ProposalSource::kCache
                                           : ProposalSource::kJit;
    }
    const double waited_us = DraftingUs() + ReadingUs();
    if (mode == Mode::kSsd) {
      const bool prepared = --unread_ < 0;
      hit_ = prepared && Chance(world_.hit);
      proposal.hit = hit_;
      proposal.fanout = prepared ? 3 : 0;
    }
    const double noise = std::uniform_real_distribution<>(0.97, 1.03)(random_);
    const int rows = 1 + proposal.proposed;
    const double contention = mode == Mode::kSsd ? world_.contention : 1;
    PassObservation pass{
        .rows = rows,
        .context = load_.context,
        .pass_us = noise * contention * (world_.target_us + world_.target_row_us * rows),
        .wait_us = waited_us,
        .host_us = kHostUs,
        .tokens = proposal.accepted + 1,
        .lookahead = plan_.lookahead,
        .mode = mode,
        .draft_busy = mode == Mode::kSsd,
        .predicted = sequence_.predicted,
        .predicted_at = sequence_.predicted_at,
        .chosen = true};
    planner_.ObserveProposal(proposal, &sequence_);
    planner_.ObservePass(pass);
    *tokens += pass.tokens;
    *us += pass.pass_us + pass.wait_us + pass.host_us;
    load_.context += pass.tokens;
    load_.tokens_left -= pass.tokens;
    if (world_.sequence_rounds > 0 && load_.tokens_left < 1) {
      Begin(sequence_.wanted);
    } else {
      plan_ = planner_.Replan(plan_, load_, &sequence_);
    }
  }

  World world_;
  OnlinePlanner planner_;
  SequenceEstimate sequence_;
  SpeculationPlan plan_;
  Workload load_ = kLoad;
  Mode drafting_ = Mode::kAr;  // Whose draft has read the context.
  int unread_ = 0;             // Rounds that it yet reads for, beside the target.
  bool hit_ = false;
  int rounds_ = 0;
  std::mt19937 random_;
  ByMode<int> uses_{};
};

inline PlannerSettings Settings(std::initializer_list<Mode> modes = {Mode::kAr, Mode::kSd,
                                                                     Mode::kSsd, Mode::kNgram}) {
  PlannerSettings settings;
  settings.limits.modes = modes;
  settings.limits.fallbacks = {};
  for (const Fallback fallback : {Fallback::kNone, Fallback::kJit, Fallback::kNgram}) {
    settings.limits.fallbacks.push_back(fallback);
  }
  return settings;
}

}  // namespace foretoken
