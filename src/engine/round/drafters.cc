#include "engine/round/drafters.h"

#include <algorithm>

#include "base/clock.h"
#include "draft/ngram/ngram_drafter.h"

namespace foretoken {
namespace {

// Rows of the next pass, as far as they are known, without the sequence's own.
int OtherRows(const RunningSet& running, const Sequence& sequence) {
  int rows = 0;
  for (const auto& other : running) {
    if (other.get() == &sequence || other->finish.has_value()) continue;
    // Those that do not speculate ahead propose later: likely as much as they just did.
    rows += 1 + (other->opened ? other->proposal : other->verified).size();
  }
  return rows;
}

}  // namespace

DraftContext ContextFor(const RetrievalBudget& budget, int batch, Sequence* sequence) {
  const SpeculationPlan& plan = sequence->plan;
  const int nodes = budget.NodesOf(plan, batch);
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
          .row_prices = budget.PricesFor(plan),
          .proposal = &sequence->proposal,
          .laws = sequence->draws ? &sequence->laws : nullptr};
}

Drafters::Drafters(DraftersByMode by_mode, int vocabulary, int max_batch)
    : by_mode_(std::move(by_mode)), random_(vocabulary) {
  auto& ngram = by_mode_[static_cast<std::size_t>(Mode::kNgram)];
  if (ngram == nullptr) ngram = std::make_unique<NgramDrafter>();
  contexts_.reserve(static_cast<std::size_t>(max_batch));
}

void Drafters::Propose(const RunningSet& running, RetrievalBudget* budget) {
  for (int mode = 0; mode < kModes; ++mode) {
    if (Has(static_cast<Mode>(mode))) ProposeInMode(static_cast<Mode>(mode), running, budget);
  }
}

void Drafters::ProposeInMode(Mode mode, const RunningSet& running, RetrievalBudget* budget) {
  contexts_.clear();
  for (const auto& sequence : running) {
    // A prompt under way, also one that is recomputed, has no root to draft from yet.
    if (sequence->plan.mode != mode || sequence->uncomputed() != 1) continue;
    contexts_.push_back(ContextFor(*budget, static_cast<int>(running.size()), sequence.get()));
  }
  if (mode == Mode::kSssd) budget->SpareUseless(&contexts_);
  if (contexts_.empty()) return;
  const std::int64_t start = NowNs();
  by_mode_[static_cast<std::size_t>(mode)]->Propose(contexts_);
  if (mode == Mode::kSssd) budget->ObserveAsking(NowNs() - start, contexts_.size());
}

Drafter* Drafters::FallbackDrafter(Fallback fallback) {
  switch (fallback) {
    case Fallback::kNgram:
      return by_mode_[static_cast<std::size_t>(Mode::kNgram)].get();
    case Fallback::kRandom:
      return &random_;
    default:
      return nullptr;
  }
}

void Drafters::ProposeOnMiss(const RunningSet& running, RetrievalBudget* budget,
                             Sequence* sequence) {
  const Fallback fallback = sequence->plan.fallback;
  if (fallback == Fallback::kRetrieval) {
    RetrieveOnMiss(running, budget, sequence);
  } else if (Drafter* drafter = FallbackDrafter(fallback)) {
    DraftContext context = ContextFor(*budget, static_cast<int>(running.size()), sequence);
    drafter->Propose(std::span(&context, 1));
  }
}

void Drafters::RetrieveOnMiss(const RunningSet& running, RetrievalBudget* budget,
                              Sequence* sequence) {
  const auto batch = static_cast<int>(running.size());
  DraftContext context = ContextFor(*budget, batch, sequence);
  const int nodes = budget->RetrievedNodes(sequence->plan, batch);
  context.lookahead = std::min(nodes, sequence->DepthLimit());
  context.max_nodes = std::min(nodes, sequence->NodeLimit());
  // What hits and earlier misses propose is known, so it is known which row is the first that
  // costs another tile: in the mean over rounds it is not. (At K = 1 and a batch of 8, where 16
  // rows fit and a 17th costs as much as three and a half, SSD was 4 % slower with retrieval than
  // without, now 1 to 2 %. Sparing it where what came of it was worth less than asking lost the
  // 2 % that it then gained at K = 2.)
  context.row_prices = budget->PricesBeside(sequence->plan, OtherRows(running, *sequence));
  retrieval_.Propose(std::span(&context, 1));
}

std::span<const CandidateScore> Drafters::Retrieve(const RetrievalBudget& budget, int batch,
                                                   Sequence* sequence, Proposal* retrieved) {
  DraftContext context = ContextFor(budget, batch, sequence);
  context.lookahead = context.max_nodes = kDefaultTreeNodes;
  context.row_prices = {};
  context.proposal = retrieved;
  retrieval_.Propose(std::span(&context, 1));
  return retrieval_.scores();
}

void Drafters::Forget(SequenceId sequence) {
  for (const auto& drafter : by_mode_) {
    if (drafter != nullptr) drafter->Forget(sequence);
  }
  retrieval_.Forget(sequence);
}

}  // namespace foretoken
