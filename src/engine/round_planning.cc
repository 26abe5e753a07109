#include <algorithm>

#include "engine/engine_impl.h"

namespace foretoken {
namespace {

// Of plain rounds as short as these one of a few is looked at: they are all alike, and looking at
// each took 0.7 % of the time where a pass of one sequence takes 55 us, and 0.3 % where one of 16
// takes 500.
constexpr std::int64_t kShortPassNs = 200'000;
constexpr std::int64_t kShortPassNsPerSequence = 40'000;
constexpr int kAlikeRounds = 4;

double Us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

// F_k at the node where the verified proposal ended; 0 where nothing was prepared for any outcome,
// while the draft still reads the context, say. (Such misses counted, the first ten rounds of 16
// sequences made a cache that always hits afterwards look useless.)
int FanoutAtOutcome(const Sequence& sequence) {
  if (!sequence.prepared) return 0;
  const bool cached = sequence.verified.source == ProposalSource::kCache;
  const FanoutShape& shape = cached ? sequence.plan.primary : sequence.plan.after_fallback;
  if (shape.at.empty()) return 0;  // Not of mode ssd.
  return FanoutAt(shape, sequence.verified, sequence.outcome.node);
}

// Of the sequences for which plans are made.
class MeanPrediction {
 public:
  void Add(const SequenceEstimate& estimate) {
    ++sequences_;
    predicted_ += estimate.predicted;
    batch_ += estimate.predicted_at.batch;
    context_ += estimate.predicted_at.context;
  }
  void Tell(PassObservation* pass) const {
    if (sequences_ == 0) return;
    pass->predicted = predicted_ / sequences_;
    pass->predicted_at = {.batch = batch_ / sequences_, .context = context_ / sequences_};
  }

 private:
  int sequences_ = 0;
  double predicted_ = 0;
  int batch_ = 0;
  double context_ = 0;
};

}  // namespace

Workload Engine::Impl::LoadNow() const {
  Workload load{.batch = 0, .context = 0, .tokens_left = 0};
  for (const auto& sequence : scheduler_.running()) {
    ++load.batch;
    load.context += static_cast<double>(sequence->tokens.size());
    load.tokens_left += sequence->TokensLeft();
  }
  load.batch = std::max(load.batch, 1);
  load.context /= load.batch;
  load.tokens_left /= load.batch;
  return load;
}

void Engine::Impl::MakeFirstPlan(Sequence* sequence) {
  sequence->plan = planner_->FirstPlan(sequence->plan, LoadNow(), &*sequence->estimate);
}

void Engine::Impl::TakePlan(Sequence* sequence, const SpeculationPlan& plan) {
  sequence->plan = plan;
  sequence->estimate.reset();
  if (!plan.open()) return;
  sequence->estimate.emplace();
  MakeFirstPlan(sequence);
}

bool Engine::Impl::IsOneOfManyAlike() const {
  const bool plain = std::ranges::all_of(pass_, [](const Sequence* sequence) {
    return sequence->plan.mode == Mode::kAr && sequence->verifies;
  });
  const auto sequences = static_cast<std::int64_t>(pass_.size());
  return plain && pass_ns_ <= kShortPassNs + sequences * kShortPassNsPerSequence;
}

void Engine::Impl::ConsultPlanner() {
  const bool alike = IsOneOfManyAlike();
  if (alike && ++alike_rounds_ % kAlikeRounds != 0) return;
  TeachPlanner(alike ? kAlikeRounds : 1);
  Replan();
}

void Engine::Impl::TeachPlanner(int rounds) {
  PassObservation pass{.sequences = static_cast<int>(pass_.size()),
                       .rows = static_cast<int>(batch_.rows.size()),
                       .pass_us = Us(pass_ns_),
                       .wait_us = Us(round_wait_ns_),
                       .host_us = Us(gap_ns_ - round_wait_ns_),
                       .tokens = 0,
                       .lookahead = pass_[0]->plan.lookahead,
                       .mode = pass_[0]->plan.mode,
                       .rounds = rounds};
  SequenceEstimate nobody;
  MeanPrediction planned;
  for (Sequence* sequence : pass_) {
    pass.context += static_cast<double>(sequence->tokens.size()) / pass.sequences;
    pass.draft_busy = pass.draft_busy || sequence->opened;
    if (!sequence->verifies) continue;
    pass.tokens += static_cast<int>(sequence->emitted.size());
    if (pass.mode != sequence->plan.mode) pass.mode.reset();
    if (sequence->estimate.has_value()) {
      planned.Add(*sequence->estimate);
      pass.chosen = pass.chosen || sequence->estimate->wanted.mode == Mode::kAuto;
    }
    const bool chain = sequence->verified.IsChain();
    planner_->ObserveProposal(
        {.mode = sequence->plan.mode,
         .source = sequence->verified.source,
         .proposed = chain ? sequence->verified.size() : sequence->accepted + 1,
         .accepted = sequence->accepted,
         .fanout = FanoutAtOutcome(*sequence),
         .hit = sequence->hit},
        sequence->estimate.has_value() ? &*sequence->estimate : &nobody);
  }
  planned.Tell(&pass);
  if (!pass_prefills_ && gap_ns_ >= 0) planner_->ObservePass(pass);
}

void Engine::Impl::Replan() {
  const Workload load = LoadNow();
  for (Sequence* sequence : pass_) {
    if (!sequence->estimate.has_value() || !sequence->verifies) continue;
    if (sequence->finish.has_value()) continue;
    sequence->plan = planner_->Replan(sequence->plan, load, &*sequence->estimate);
  }
}

}  // namespace foretoken
