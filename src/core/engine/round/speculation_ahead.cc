#include "core/engine/round/speculation_ahead.h"

#include <algorithm>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

constexpr std::int64_t kChainWaitNs = 200'000;
// What one wait counts at most: where it took longer, this process stood still itself, as the
// speculator may have.
constexpr std::int64_t kLongestWaitNs = 50 * kChainWaitNs;

// Cuts a proposal of the speculator to what can be emitted. Of one that was drawn the leading nodes
// stay whose distributions have arrived: which these are never depends on the draws.
void FitProposal(Sequence* sequence) {
  Proposal& proposal = sequence->proposal;
  if (!sequence->draws) {
    proposal.Prune(sequence->DepthLimit(), sequence->NodeLimit());
    return;
  }
  int fit = 0;
  while (fit < std::min(proposal.size(), sequence->NodeLimit()) &&
         sequence->distributions.at(proposal.parents[fit]).kind ==
             DraftDistribution::Kind::kListed &&
         proposal.Depth(fit + 1) <= sequence->DepthLimit()) {
    ++fit;
  }
  proposal.Truncate(fit);
}

bool NobodyElseToServe(const RunningSet& running) {
  return std::ranges::all_of(running, [](const auto& sequence) {
    return sequence->finish.has_value() || !sequence->hit.value_or(true);
  });
}

}  // namespace

LiveSequence SpeculationAhead::Describe(const Sequence& sequence) const {
  const ConstraintCursor* constraint = sequence.history.constraint();
  return {.sequence = sequence.id,
          .tokens = sequence.tokens,
          .prompt_tokens = sequence.prompt_tokens,
          .sampling = &sequence.request.sampling,
          .plan = &sequence.plan,
          .draws = sequence.draws,
          .stop_tokens = sequence.stop_tokens,
          .drops_space = constraint != nullptr && constraint->drops_space(),
          .taps = RowsOf(sequence)};
}

void SpeculationAhead::Open(Sequence* sequence) {
  if (sequence->opened || (part_.width > 0 && sequence->uncomputed() != 1)) return;
  sequence->opened = true;
  speculator_->Open(Describe(*sequence));
}

void SpeculationAhead::Close(Sequence* sequence) {
  if (sequence->opened) speculator_->Close(sequence->id);
  sequence->opened = false;
  sequence->awaits_jit = false;
}

void SpeculationAhead::Heal(const RunningSet& running) {
  if (!speculator_->NeedsHealing()) return;
  std::vector<LiveSequence> live;
  for (const auto& sequence : running) {
    if (sequence->opened) live.push_back(Describe(*sequence));
  }
  speculator_->Heal(live);
}

void SpeculationAhead::AwaitProposals(const RunningSet& running) {
  Heal(running);
  std::int64_t patience = 0;
  for (const auto& sequence : running) {
    if (!sequence->awaits_jit) continue;
    patience += speculator_->ProposalPatienceNs(sequence->plan.lookahead);
  }
  if (patience == 0) return;
  std::int64_t waited = 0;
  std::int64_t last = NowNs();
  while (!TakeAwaited(running)) {
    if (waited > patience) speculator_->LoseSilent();
    speculator_->Wait(kChainWaitNs);
    Heal(running);
    const std::int64_t now = NowNs();
    waited += std::min(now - last, kLongestWaitNs);
    last = now;
  }
}

// Whether there is none left to wait for.
bool SpeculationAhead::TakeAwaited(const RunningSet& running) {
  speculator_->Poll();
  bool all = true;
  for (const auto& sequence : running) {
    if (!sequence->awaits_jit) continue;
    DraftDistributions* distributions = sequence->draws ? &sequence->distributions : nullptr;
    if (!speculator_->TakeProposal(sequence->id, &sequence->proposal, distributions)) {
      all = false;
      continue;
    }
    sequence->awaits_jit = false;
    FitProposal(sequence.get());
    if (sequence->proposal.size() > 0) ++sequence->stats.fallbacks;
  }
  return all;
}

void SpeculationAhead::SendRetrieved(const Round& round, const RunningSet& running,
                                     Drafters* drafters) {
  const auto has_datastore = [](const Sequence* sequence) {
    // Where proposals are drawn, what is prepared must not depend on the tokens drawn before.
    return sequence->opened && sequence->verifies && !sequence->draws &&
           sequence->request.datastore != nullptr;
  };
  for (Sequence* sequence : round.pass) sequence->asked_for_cache = false;
  if (std::ranges::none_of(round.pass, has_datastore) || !worth_.AskNow()) return;
  const int batch = running.size();
  for (Sequence* sequence : round.pass) {
    if (!has_datastore(sequence)) continue;
    const std::int64_t start = NowNs();
    const auto scores = drafters->Retrieve(batch, sequence, &retrieved_);
    speculator_->SendRetrieved(sequence->id,
                               OutcomesBeside(sequence->proposal, retrieved_, scores));
    sequence->asked_for_cache = true;
    worth_.ObserveAsking(Microseconds(NowNs() - start));
  }
}

DraftPasses SpeculationAhead::TakeNews() {
  speculator_->Poll();
  return speculator_->TakeDraftPasses();
}

void SpeculationAhead::AnswerOutcomes(const Round& round, const RunningSet& running,
                                      Drafters* drafters) {
  const auto speculates = [](const Sequence* sequence) {
    return sequence->opened && sequence->verifies && !sequence->finish.has_value();
  };
  // Hits first: their next proposals are known, and the speculator can go on at once.
  for (Sequence* sequence : round.pass) {
    if (speculates(sequence)) LookUp(sequence);
  }
  const bool may_wait = speculator_->healthy() && NobodyElseToServe(running);
  for (Sequence* sequence : round.pass) {
    if (!speculates(sequence) || sequence->hit != false) continue;
    drafters->ProposeOnMiss(running, sequence);
    if (sequence->proposal.size() > 0) ++sequence->stats.fallbacks;
    Dispatch(sequence, may_wait && sequence->plan.fallback == Fallback::kJit);
  }
}

void SpeculationAhead::LookUp(Sequence* sequence) {
  RequestStats& stats = sequence->stats;
  const CacheAnswer& answer = speculator_->Lookup(sequence->id, sequence->outcome);
  const bool full = sequence->verified.FirstChild(sequence->outcome.node) == 0;
  ++(full ? stats.lookups_full : stats.lookups_partial);
  sequence->hit = answer.hit;
  sequence->prepared = answer.any;
  if (sequence->asked_for_cache) {
    worth_.ObserveAnswer(answer.retrieved ? worth_.tokens_per_round() - 1 : 0);
  }
  if (!answer.hit) return;
  sequence->hit_rank = answer.rank;
  if (answer.retrieved) ++stats.hits_retrieved;
  ++(full ? stats.hits_full : stats.hits_partial);
  sequence->proposal = answer.proposal;
  if (sequence->draws) sequence->distributions = *answer.distributions;
  FitProposal(sequence);
  Dispatch(sequence, /*wants_jit=*/false);
}

void SpeculationAhead::Dispatch(Sequence* sequence, bool wants_jit) {
  sequence->awaits_jit = wants_jit;
  speculator_->SendOutcome(sequence->id, sequence->outcome, sequence->emitted, sequence->proposal,
                           sequence->plan, wants_jit, RowsOf(*sequence));
}

void SpeculationAhead::ObserveRound(const Round& round) {
  if (round.prefills || round.gap_ns < 0 || round.disturbed) return;
  worth_.ObserveRound(Int(round.pass.size()), EmittedTokens(round), Microseconds(round.all_ns));
}

}  // namespace foretoken
