#include <algorithm>

#include "base/clock.h"
#include "engine/engine_impl.h"

namespace foretoken {
namespace {

// A just-in-time draft that takes longer than this is not waited for: a stuck speculator must not
// hold the output up.
constexpr std::int64_t kChainPatienceNs = 1'000'000'000;
constexpr std::int64_t kChainWaitNs = 200'000;

// Cuts a proposal of the speculator to what can be emitted. Of one that was drawn the leading nodes
// stay whose laws have arrived: which these are never depends on the draws.
void FitProposal(Sequence* sequence) {
  Proposal& proposal = sequence->proposal;
  if (!sequence->draws) {
    proposal.Prune(sequence->DepthLimit(), sequence->NodeLimit());
    return;
  }
  int fit = 0;
  while (fit < std::min(proposal.size(), sequence->NodeLimit()) &&
         sequence->laws.at(proposal.parents[fit]).kind == DraftLaw::Kind::kListed &&
         proposal.Depth(fit + 1) <= sequence->DepthLimit()) {
    ++fit;
  }
  proposal.Truncate(fit);
}

}  // namespace

void Engine::Impl::CollectProposals() {
  const std::int64_t start = NowNs();
  for (const auto& sequence : scheduler_.running()) FollowPlan(sequence.get());
  SetRowPrices();
  for (int mode = 0; mode < kModes; ++mode) DraftSynchronously(static_cast<Mode>(mode));
  if (speculator_ != nullptr) {
    HealSpeculator();
    AwaitChains();
  }
  round_wait_ns_ = NowNs() - start;
}

DraftContext Engine::Impl::ContextFor(Sequence* sequence) {
  const SpeculationPlan& plan = sequence->plan;
  const int nodes = NodesOf(plan);
  const int longest = Retrieves(plan.mode) ? nodes : plan.lookahead;
  if (sequence->draws) sequence->laws.Clear();  // A preempted sequence may still have some.
  return {.sequence = sequence->id,
          .tokens = sequence->tokens,
          .sampling = &sequence->request.sampling,
          .history = &sequence->history,
          .datastore = sequence->request.datastore,
          .lookahead = std::min(longest, sequence->DepthLimit()),
          .tree_width = plan.tree_width,
          .max_nodes = std::min(nodes, sequence->NodeLimit()),
          .row_prices = PricesFor(plan),
          .proposal = &sequence->proposal,
          .laws = sequence->draws ? &sequence->laws : nullptr};
}

void Engine::Impl::DraftSynchronously(Mode mode) {
  Drafter* drafter = proposers_.of(mode).get();
  if (drafter == nullptr) return;
  contexts_.clear();
  for (const auto& sequence : scheduler_.running()) {
    // A prompt under way, also one that is recomputed, has no root to draft from yet.
    if (sequence->plan.mode != mode || sequence->uncomputed() != 1) continue;
    contexts_.push_back(ContextFor(sequence.get()));
  }
  if (mode == Mode::kSssd) SpareUselessRetrieval();
  if (contexts_.empty()) return;
  const std::int64_t start = NowNs();
  drafter->Propose(contexts_);
  if (!asked_in_round_ || mode != Mode::kSssd) return;
  const double us = static_cast<double>(NowNs() - start) / 1e3;
  worth_in_rounds_.ObserveAsking(us / static_cast<double>(contexts_.size()));
}

void Engine::Impl::AwaitChains() {
  const auto awaits = [](const auto& sequence) { return sequence->awaits_jit; };
  const auto& running = scheduler_.running();
  if (std::none_of(running.begin(), running.end(), awaits)) return;
  const std::int64_t deadline = NowNs() + kChainPatienceNs;
  for (;;) {
    speculator_->Poll();
    bool missing = false;
    for (const auto& sequence : running) {
      if (!sequence->awaits_jit) continue;
      ProposalLaws* laws = sequence->draws ? &sequence->laws : nullptr;
      if (speculator_->TakeProposal(sequence->id, &sequence->proposal, laws)) {
        sequence->awaits_jit = false;
        FitProposal(sequence.get());
        if (sequence->proposal.size() > 0) ++sequence->stats.fallbacks;
      } else {
        missing = true;
      }
    }
    if (!missing) return;
    if (NowNs() > deadline) break;
    speculator_->Wait(kChainWaitNs);
    HealSpeculator();
  }
  for (const auto& sequence : running) sequence->awaits_jit = false;
}

bool Engine::Impl::NobodyElseToServe() const {
  const auto& running = scheduler_.running();
  return std::all_of(running.begin(), running.end(), [](const auto& sequence) {
    return sequence->finish.has_value() || sequence->hit == false;
  });
}

void Engine::Impl::SendOutcomes() {
  const auto speculates = [](const Sequence* sequence) {
    return sequence->opened && sequence->verifies && !sequence->finish.has_value();
  };
  // Hits first: their next proposals are known, and the speculator can go on at once.
  for (Sequence* sequence : pass_) {
    if (speculates(sequence)) LookUp(sequence);
  }
  const bool may_wait = speculator_->healthy() && NobodyElseToServe();
  for (Sequence* sequence : pass_) {
    if (speculates(sequence) && sequence->hit == false) FallBack(sequence, may_wait);
  }
}

void Engine::Impl::LookUp(Sequence* sequence) {
  RequestStats& stats = sequence->stats;
  const CacheAnswer& answer = speculator_->Lookup(sequence->id, sequence->outcome);
  const bool full = sequence->verified.FirstChild(sequence->outcome.node) == 0;
  ++(full ? stats.lookups_full : stats.lookups_partial);
  sequence->hit = answer.hit;
  sequence->prepared = answer.any;
  if (sequence->asked_for_cache) {
    worth_in_cache_.ObserveAnswer(answer.retrieved ? worth_in_cache_.tokens_per_round() - 1 : 0);
  }
  if (!answer.hit) return;
  sequence->hit_rank = answer.rank;
  if (answer.retrieved) ++stats.hits_retrieved;
  ++(full ? stats.hits_full : stats.hits_partial);
  sequence->proposal = answer.proposal;
  if (sequence->draws) sequence->laws = *answer.laws;
  FitProposal(sequence);
  Dispatch(sequence, /*wants_jit=*/false);
}

Drafter* Engine::Impl::FallbackDrafter(Fallback fallback) {
  switch (fallback) {
    case Fallback::kNgram:
      return proposers_.of(Mode::kNgram).get();
    case Fallback::kRandom:
      return &random_;
    default:
      return nullptr;
  }
}

void Engine::Impl::FallBack(Sequence* sequence, bool may_wait) {
  const Fallback fallback = sequence->plan.fallback;
  if (fallback == Fallback::kRetrieval) {
    RetrieveOnMiss(sequence);
  } else if (Drafter* drafter = FallbackDrafter(fallback)) {
    DraftContext context = ContextFor(sequence);
    drafter->Propose(std::span(&context, 1));
  }
  if (sequence->proposal.size() > 0) ++sequence->stats.fallbacks;
  Dispatch(sequence, may_wait && fallback == Fallback::kJit);
}

void Engine::Impl::Dispatch(Sequence* sequence, bool wants_jit) {
  sequence->awaits_jit = wants_jit;
  speculator_->SendOutcome(sequence->id, sequence->outcome, sequence->emitted, sequence->proposal,
                           sequence->plan, wants_jit);
}

}  // namespace foretoken
