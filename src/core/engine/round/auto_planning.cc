#include "core/engine/round/auto_planning.h"

#include <algorithm>
#include <utility>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

// Plain rounds as short as these are all alike, so that one of a few is learned from: to learn from
// each took 0.7 % of the time where a pass of one sequence takes 55 us, 0.3 % where one of 16 takes
// 500, and 0.4 % where one of 4 takes 760.
constexpr std::int64_t kShortPassNs = 800'000;
constexpr std::int64_t kShortPassNsPerSequence = 40'000;
constexpr int kAlikeRounds = 4;

// A shadow proposal is made in one round of so many (20 us of sixteen rounds of 560, with the
// smallest of targets), and its drafter is told of what passes say in more, from which it learns
// what to say: of one sequence of the batch, which take turns. (Asked for all of four, and told of
// one in every round, it took 10 us of a round of 780.)
constexpr unsigned kRoundsBetweenShadows = 16;
constexpr unsigned kRoundsBetweenTold = 4;

// F_k at the node where the verified proposal ended; 0 where nothing was prepared for any outcome,
// while the draft still reads the context, say. (Such misses counted, the first ten rounds of 16
// sequences made a cache that always hits afterwards seem useless.)
int FanoutAtOutcome(const Sequence& sequence) {
  if (!sequence.prepared) return 0;
  const bool cached = sequence.verified.source == ProposalSource::kCache;
  const FanoutShape& shape = cached ? sequence.plan.primary : sequence.plan.after_fallback;
  if (shape.at.empty()) return 0;  // Not of mode ssd.
  return FanoutAt(shape, sequence.verified, sequence.outcome.node);
}

// Tokens along the main path of a proposal of which so many were accepted: what a tree has behind
// the last of them counts as one.
int ProposedAlong(const Proposal& proposal, int accepted) {
  return proposal.IsChain() ? proposal.size() : accepted + 1;
}

// A round of which the planner need not see all.
bool IsOneOfManyAlike(const Round& round) {
  const bool plain = std::ranges::all_of(round.pass, [](const Sequence* sequence) {
    return !sequence->plan.mode.drafts() && sequence->verifies;
  });
  const std::int64_t sequences = round.pass.size();
  return plain && round.pass_ns <= kShortPassNs + sequences * kShortPassNsPerSequence;
}

}  // namespace

Workload LoadOf(const RunningSet& running) {
  Workload load{.batch = 0, .context = 0, .tokens_left = 0};
  for (const auto& sequence : running) {
    ++load.batch;
    load.context += static_cast<double>(sequence->tokens.size());
    load.tokens_left += sequence->TokensLeft();
  }
  load.batch = std::max(load.batch, 1);
  load.context /= load.batch;
  load.tokens_left /= load.batch;
  return load;
}

void AutoPlanning::MakeFirstPlan(const RunningSet& running, Sequence* sequence) {
  sequence->plan =
      planner_.FirstPlan(sequence->plan, LoadOf(running), &sequence->estimate.emplace());
}

ProposalObservation WhatCameTrue(DrafterId drafter, const Proposal& proposal,
                                 std::span<const Token> text) {
  ProposalObservation seen{.mode = {Schedule::kBefore, drafter}, .rows = proposal.size()};
  if (proposal.size() == 0) return seen;
  seen.source = ProposalSource::Of(drafter);
  int node = 0;
  for (const Token token : text) {
    if ((node = proposal.ChildWith(node, token)) == 0) break;
    ++seen.accepted;
  }
  seen.proposed = ProposedAlong(proposal, seen.accepted);
  return seen;
}

bool AutoPlanning::MayShadow(const Sequence& sequence) const {
  if (!shadow_drafter_.has_value() || !sequence.estimate.has_value()) return false;
  const bool open = sequence.estimate->wanted.mode.planned();
  return open && sequence.plan.mode != Mode{Schedule::kBefore, *shadow_drafter_};
}

void AutoPlanning::ProposeShadow(const RunningSet& running, Drafters* drafters) {
  if (!shadow_drafter_.has_value() || running.empty()) return;
  if (++rounds_ % kRoundsBetweenShadows != 0) return;
  Sequence* sequence = running[rounds_ / kRoundsBetweenShadows % running.size()].get();
  const std::size_t position = std::exchange(sequence->shadow_position, 0);
  if (!MayShadow(*sequence) || sequence->uncomputed() != 1 || sequence->awaits_mask) return;
  if (position > 0) {
    SequenceEstimate nobody;
    const auto text = std::span<const Token>(sequence->tokens).subspan(position);
    planner_.ObserveProposal(WhatCameTrue(*shadow_drafter_, sequence->shadow, text), &nobody);
  }
  sequence->shadow_position = sequence->tokens.size();
  const std::int64_t start = NowNs();
  drafters->ProposeShadow(*shadow_drafter_, Int(running.size()), sequence);
  planner_.ObserveAsking(*shadow_drafter_, Microseconds(NowNs() - start));
}

void AutoPlanning::TellShadow(Logits logits, const Sequence& sequence, const RunningSet& running,
                              Drafters* drafters) const {
  if (rounds_ % kRoundsBetweenTold != 0 || !MayShadow(sequence)) return;
  const std::size_t turn = rounds_ / kRoundsBetweenTold + Size(sequence.id);
  if (turn % running.size() == 0) drafters->ObserveBy(*shadow_drafter_, logits, sequence);
}

void AutoPlanning::ObserveDraft(const DraftPasses& news, const RunningSet& running) {
  if (news.passes == 0) return;
  const double passes = static_cast<double>(news.passes);
  planner_.ObserveDraft(static_cast<double>(news.rows) / passes, LoadOf(running).context,
                        Microseconds(news.ns) / passes);
}

void AutoPlanning::Consult(const Round& round, const RunningSet& running) {
  const bool alike = IsOneOfManyAlike(round);
  if (alike && ++alike_rounds_ % kAlikeRounds != 0) return;
  Learn(round, alike ? kAlikeRounds : 1);
  const Workload load = LoadOf(running);
  for (Sequence* sequence : round.pass) {
    if (!sequence->estimate.has_value() || !sequence->verifies) continue;
    if (sequence->finish.has_value()) continue;
    sequence->plan = planner_.Replan(sequence->plan, load, &*sequence->estimate);
  }
}

// From a round that stands for `rounds` like it.
void AutoPlanning::Learn(const Round& round, int rounds) {
  PassObservation pass{.sequences = Int(round.pass.size()),
                       .rows = round.rows,
                       .pass_us = Microseconds(round.pass_ns),
                       .wait_us = Microseconds(round.wait_ns),
                       .host_us = Microseconds(round.gap_ns - round.wait_ns),
                       .tokens = 0,
                       .lookahead = round.pass[0]->plan.lookahead,
                       .mode = round.pass[0]->plan.mode,
                       .predicted_at = {.batch = 0, .context = 0},
                       .disturbed = round.disturbed,
                       .rounds = rounds};
  SequenceEstimate nobody;
  int planned = 0;
  for (Sequence* sequence : round.pass) {
    pass.context += static_cast<double>(sequence->tokens.size()) / pass.sequences;
    pass.draft_busy = pass.draft_busy || sequence->opened;
    if (!sequence->verifies) continue;
    pass.tokens += sequence->emitted.size();
    if (pass.mode != sequence->plan.mode) pass.mode.reset();
    if (sequence->estimate.has_value()) {
      ++planned;
      pass.predicted += sequence->estimate->predicted;
      pass.predicted_at.batch += sequence->estimate->predicted_at.batch;
      pass.predicted_at.context += sequence->estimate->predicted_at.context;
      pass.chosen = pass.chosen || sequence->estimate->wanted.mode.planned();
    }
    planner_.ObserveProposal({.mode = sequence->plan.mode,
                              .source = sequence->verified.source,
                              .proposed = ProposedAlong(sequence->verified, sequence->accepted),
                              .accepted = sequence->accepted,
                              .rows = sequence->verified.size(),
                              .fanout = FanoutAtOutcome(*sequence),
                              .hit = sequence->hit},
                             sequence->estimate.has_value() ? &*sequence->estimate : &nobody);
  }
  if (planned > 0) {
    pass.predicted /= planned;
    pass.predicted_at.batch /= planned;
    pass.predicted_at.context /= planned;
  }
  if (!round.prefills && round.gap_ns >= 0) planner_.ObservePass(pass);
}

}  // namespace foretoken
