#include <algorithm>

#include "base/clock.h"
#include "engine/engine_impl.h"

namespace foretoken {
namespace {

// A just-in-time draft that takes longer than this is not waited for: a stuck speculator must not
// hold the output up.
constexpr std::int64_t kChainPatienceNs = 1'000'000'000;
constexpr std::int64_t kChainWaitNs = 200'000;

}  // namespace

void Engine::Impl::CollectProposals() {
  const std::int64_t start = NowNs();
  if (drafter_ != nullptr) {
    DraftSynchronously();
  } else if (speculator_ != nullptr) {
    HealSpeculator();
    AwaitChains();
  } else {
    return;
  }
  round_wait_ns_ = NowNs() - start;
}

void Engine::Impl::DraftSynchronously() {
  contexts_.clear();
  for (const auto& sequence : scheduler_.running()) {
    // A prompt under way, also one that is recomputed, has no root to draft from yet.
    if (sequence->uncomputed() != 1) continue;
    sequence->speculated = true;
    contexts_.push_back({.sequence = sequence->id,
                         .tokens = sequence->tokens,
                         .sampling = &sequence->request.sampling,
                         .history = &sequence->history,
                         .lookahead = std::min(options_.lookahead, sequence->ProposalLimit()),
                         .proposal = &sequence->proposal});
  }
  if (!contexts_.empty()) drafter_->Propose(contexts_);
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
      if (speculator_->TakeChain(sequence->id, &sequence->proposal)) {
        sequence->awaits_jit = false;
        sequence->proposal.Truncate(std::min(sequence->proposal.size(), sequence->ProposalLimit()));
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
    return sequence->finish.has_value() || (sequence->verifies && !sequence->hit);
  });
}

void Engine::Impl::SendOutcomes() {
  // Hits first: their next proposals are known, and the speculator can go on at once.
  for (Sequence* sequence : pass_) {
    if (!sequence->verifies || sequence->finish.has_value()) continue;
    const PreparedBranch* prepared = speculator_->Lookup(sequence->id, sequence->outcome);
    const bool full = sequence->outcome.node == sequence->proposal.size();
    ++(full ? sequence->stats.lookups_full : sequence->stats.lookups_partial);
    sequence->hit = prepared != nullptr;
    if (!sequence->hit) continue;
    ++(full ? sequence->stats.hits_full : sequence->stats.hits_partial);
    sequence->proposal.Clear();
    sequence->proposal.source = ProposalSource::kCache;
    const auto size = std::min(static_cast<int>(prepared->chain.size()), sequence->ProposalLimit());
    for (int i = 0; i < size; ++i) sequence->proposal.Extend(prepared->chain[i]);
    Dispatch(sequence, /*wants_jit=*/false);
  }
  const bool may_wait =
      options_.fallback == Fallback::kJit && speculator_->healthy() && NobodyElseToServe();
  for (Sequence* sequence : pass_) {
    if (!sequence->verifies || sequence->finish.has_value() || sequence->hit) continue;
    sequence->proposal.Clear();
    if (options_.fallback == Fallback::kNgram) {
      DraftContext context{.sequence = sequence->id,
                           .tokens = sequence->tokens,
                           .sampling = &sequence->request.sampling,
                           .history = &sequence->history,
                           .lookahead = std::min(options_.lookahead, sequence->ProposalLimit()),
                           .proposal = &sequence->proposal};
      ngram_.Propose(std::span(&context, 1));
      if (sequence->proposal.size() > 0) ++sequence->stats.fallbacks;
    }
    Dispatch(sequence, may_wait);
  }
}

void Engine::Impl::Dispatch(Sequence* sequence, bool wants_jit) {
  sequence->awaits_jit = wants_jit;
  speculator_->SendOutcome(sequence->id, sequence->outcome, sequence->emitted, sequence->proposal,
                           wants_jit);
}

}  // namespace foretoken
