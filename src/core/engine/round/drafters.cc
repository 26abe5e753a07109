#include "core/engine/round/drafters.h"

#include <algorithm>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/draft/registry.h"
#include "core/draft/retrieval/speculation_length.h"
#include "core/engine/rules.h"

namespace foretoken {
namespace {

// Whether retrieval proposes what is worth its row.
bool IsPriced(const SpeculationPlan& plan) {
  if (PricesRows(plan.mode)) return plan.speculation_length == kAutoSpeculationLength;
  return plan.FallsBackOnRetrieval() &&
         plan.speculation_length.value_or(kAutoSpeculationLength) == kAutoSpeculationLength;
}

bool HasPrice(const DraftContext& context) { return !context.row_prices.empty(); }

void FillPrices(const RowPrice& row_price, double other_rows, std::vector<double>* prices) {
  prices->resize(kMaxAutoSpeculationLength - 1);
  row_price.Fill(other_rows, *prices);
}

// Rows of the next pass, as far as they are known, without the sequence's own.
int OtherRows(const RunningSet& running, const Sequence& sequence) {
  int rows = 0;
  for (const auto& other : running) {
    if (other.get() == &sequence || other->finish.has_value()) continue;
    // Sequences that do not speculate ahead propose later: likely as much as they just did.
    rows += 1 + (other->opened ? other->proposal : other->verified).size();
  }
  return rows;
}

// Tokens of a sequence, in the mean.
double MeanContext(const Round& round) {
  double sum = 0;
  for (const Sequence* sequence : round.pass) sum += static_cast<double>(sequence->tokens.size());
  return sum / static_cast<double>(std::max<std::size_t>(1, round.pass.size()));
}

}  // namespace

RetrievalBudget::RetrievalBudget(const MeasuredTimes& times, int max_nodes)
    : max_nodes_(max_nodes), knee_rows_(times.knee_rows) {
  if (times.row_times.rows().empty()) return;
  row_price_.emplace(times.row_times);
  FillPrices(*row_price_, 0, &prices_);
}

void RetrievalBudget::SetPrices(const RunningSet& running) {
  const auto priced = [](const auto& sequence) { return IsPriced(sequence->plan); };
  if (std::ranges::any_of(running, priced)) SetPrices();
}

void RetrievalBudget::SetPrices() {
  if (row_price_.has_value()) FillPrices(*row_price_, row_price_->other_rows(), &prices_);
}

int RetrievalBudget::NodesOf(const SpeculationPlan& plan, int batch) const {
  return Retrieves(plan.mode) ? RetrievedNodes(plan, batch) : plan.nodes();
}

int RetrievalBudget::MostNodes(const SpeculationPlan& plan, int batch) const {
  const int nodes = NodesOf(plan, batch);
  return plan.FallsBackOnRetrieval() ? std::max(nodes, RetrievedNodes(plan, batch)) : nodes;
}

int RetrievalBudget::RetrievedNodes(const SpeculationPlan& plan, int batch) const {
  if (IsPriced(plan) && prices_.empty()) return plan.lookahead;  // Passes were not measured.
  const int wanted = !plan.measures_length() || IsPriced(plan)
                         ? plan.RetrievedNodes()
                         : SpeculationLength(knee_rows_, std::max(1, batch)) - 1;
  return std::min(wanted, max_nodes_);
}

std::span<const double> RetrievalBudget::PricesFor(const SpeculationPlan& plan) const {
  return IsPriced(plan) ? std::span<const double>(prices_) : std::span<const double>();
}

std::span<const double> RetrievalBudget::PricesBeside(const SpeculationPlan& plan, int other_rows) {
  if (PricesFor(plan).empty()) return {};
  FillPrices(*row_price_, other_rows, &prices_beside_);
  return prices_beside_;
}

void RetrievalBudget::SpareUseless(std::vector<DraftContext>* contexts) {
  const bool any_priced = std::ranges::any_of(*contexts, HasPrice);
  asked_ = any_priced && worth_.AskNow();
  if (any_priced && !asked_) std::erase_if(*contexts, HasPrice);
}

void RetrievalBudget::ObserveAsking(std::int64_t ns, std::size_t sequences) {
  if (asked_) worth_.ObserveAsking(Microseconds(ns) / static_cast<double>(sequences));
}

double RetrievalBudget::WorthOf(const Sequence& sequence) const {
  double tokens = sequence.accepted;
  const auto rows = std::min(Size(sequence.verified.size()), prices_.size());
  for (std::size_t i = 0; i < rows; ++i) tokens -= prices_[i];
  return tokens;
}

void RetrievalBudget::ObserveRound(const Round& round) {
  for (const Sequence* sequence : round.pass) {
    const bool priced = sequence->plan.mode == Mode::kSssd && IsPriced(sequence->plan);
    if (asked_ && priced && sequence->verifies) worth_.ObserveAnswer(WorthOf(*sequence));
  }
  if (round.prefills || round.gap_ns < 0 || round.disturbed) return;
  const int sequences = round.pass.size();
  const int tokens = EmittedTokens(round);
  worth_.ObserveRound(sequences, tokens, Microseconds(round.all_ns));
  if (!row_price_.has_value()) return;
  row_price_->Observe({.sequences = sequences,
                       .rows = round.rows,
                       .context = MeanContext(round),
                       .tokens = static_cast<double>(tokens),
                       .pass_us = Microseconds(round.pass_ns),
                       .round_us = Microseconds(round.all_ns)});
}

Drafters::Drafters(DraftersById before, const RetrievalBudget& budget, const TapStore* taps,
                   const ByDrafter<TapPart>& parts, int vocabulary, int max_batch,
                   TargetRoom target)
    : budget_(budget),
      taps_(taps),
      parts_(parts),
      vocabulary_(vocabulary),
      target_(target),
      before_(std::move(before)) {
  auto retrieval = std::make_unique<RetrievalDrafter>();
  retrieval_ = retrieval.get();
  on_miss_[DrafterId::kRetrieval] = std::move(retrieval);
  const DrafterParts made_of{.vocabulary = vocabulary, .max_sequences = max_batch};
  for (const DrafterId id : kDrafterIds) {
    const DrafterInfo& info = InfoOf(id);
    const bool always = info.needs == DrafterNeeds::kText && !info.baseline;
    if (always && before_[id] == nullptr) before_[id] = MakeDrafter(id, made_of);
    has_[id] = before_[id] != nullptr;
    if (info.fallback && on_miss_[id] == nullptr) on_miss_[id] = MakeDrafter(id, made_of);
  }
  contexts_.reserve(max_batch);
}

void Drafters::Propose(const RunningSet& running) {
  budget_.SetPrices(running);
  for (const DrafterId id : kDrafterIds) {
    if (Has(id)) ProposeWith(id, running);
  }
}

void Drafters::ProposeWith(DrafterId drafter, const RunningSet& running) {
  contexts_.clear();
  for (const auto& sequence : running) {
    // A prompt under way, also one that is recomputed, has no root to draft from yet.
    const Mode mode = sequence->plan.mode;
    if (!mode.before() || mode.drafter != drafter || sequence->uncomputed() != 1) continue;
    if (sequence->awaits_mask) continue;  // It sits the round out.
    if (sequence->alone) continue;        // A draft might write keys beside its own, too.
    const int batch = running.size();
    contexts_.push_back(ContextFor(drafter, batch, sequence.get()));
    // Drafters that are made of others may have draft models among them.
    const bool drafts = IsDraftModel(drafter) || InfoOf(drafter).needs == DrafterNeeds::kDrafters;
    if (drafts) OfferKv(sequence.get(), &contexts_.back());
  }
  const bool retrieves = drafter == DrafterId::kRetrieval;  // An ensemble spares its own members.
  if (retrieves) budget_.SpareUseless(&contexts_);
  if (contexts_.empty()) return;
  const std::int64_t start = NowNs();
  before_[drafter]->Propose(contexts_);
  if (retrieves) budget_.ObserveAsking(NowNs() - start, contexts_.size());
}

// With room for a proposal, which the pass makes anyway where there is one. Where there is none
// nobody is preempted for it: a draft that needs the target's KV then proposes nothing.
void Drafters::OfferKv(Sequence* sequence, DraftContext* context) {
  if (target_.store == nullptr) return;
  const std::int32_t end = sequence->root() + 1 + context->max_nodes;
  if (!target_.cache->Reserve(end, &sequence->kv)) return;
  context->target_kv = {.store = target_.store, .sequence = &sequence->kv};
}

void Drafters::ProposeShadow(DrafterId drafter, int batch, Sequence* sequence) {
  const SpeculationPlan plan{.mode = {Schedule::kBefore, drafter},
                             .lookahead = kMaxPlannedLookahead,
                             .speculation_length = kAutoSpeculationLength};
  budget_.SetPrices();
  sequence->speculated = true;
  DraftContext context = ContextFor(drafter, plan, batch, sequence);
  context.proposal = &sequence->shadow;
  context.distributions = nullptr;
  before_[drafter]->Propose({&context, 1});
}

void Drafters::Observe(Logits logits, const Sequence& sequence) {
  const Mode mode = sequence.plan.mode;
  if (mode.before() && Has(mode.drafter)) ObserveBy(mode.drafter, logits, sequence);
}

void Drafters::ObserveBy(DrafterId drafter, Logits logits, const Sequence& sequence) {
  const SamplingParams* sampling = &sequence.request.sampling;
  if (sequence.draws) {
    // Guesses that were chosen by the noise of their positions would not be independent of what
    // rejection verification draws there.
    greedy_ = *sampling;
    greedy_.temperature = 0;
    sampling = &greedy_;
  }
  before_[drafter]->Observe({.sequence = sequence.id,
                             .tokens = sequence.tokens,
                             .proposal = &sequence.verified,
                             .outcome = sequence.outcome,
                             .logits = logits.Row(sequence.first_logits, vocabulary_),
                             .sampling = sampling,
                             .history = &sequence.history,
                             .scope = sequence.request.prefix_scope});
}

void Drafters::ProposeOnMiss(const RunningSet& running, Sequence* sequence) {
  const Fallback fallback = sequence->plan.fallback;
  if (fallback.kind != Fallback::Kind::kDrafter) return;
  const int batch = running.size();
  DraftContext context = ContextFor(fallback.drafter, batch, sequence);
  if (fallback == Fallback::kRetrieval) {
    const int nodes = budget_.RetrievedNodes(sequence->plan, batch);
    context.lookahead = std::min(nodes, sequence->DepthLimit());
    context.max_nodes = std::min(nodes, sequence->NodeLimit());
    // What hits and earlier misses propose is known, so it is known which row is the first that
    // costs another tile: in the mean over rounds it is not. (At K = 1 and a batch of 8, where 16
    // rows fit and a 17th costs as much as three and a half, SSD was 4 % slower with retrieval than
    // without, now 1 to 2 %. Sparing it where what came of it was worth less than asking lost the
    // 2 % that it then gained at K = 2.)
    context.row_prices = budget_.PricesBeside(sequence->plan, OtherRows(running, *sequence));
  }
  on_miss_[fallback.drafter]->Propose(std::span(&context, 1));
}

std::span<const CandidateScore> Drafters::Retrieve(int batch, Sequence* sequence,
                                                   Proposal* retrieved) {
  DraftContext context = ContextFor(DrafterId::kRetrieval, batch, sequence);
  context.lookahead = context.max_nodes = kDefaultTreeNodes;
  context.row_prices = {};
  context.proposal = retrieved;
  retrieval_->Propose(std::span(&context, 1));
  return retrieval_->scores();
}

DraftContext Drafters::ContextFor(DrafterId drafter, const SpeculationPlan& plan, int batch,
                                  Sequence* sequence) const {
  const int nodes = budget_.NodesOf(plan, batch);
  const bool shapes_itself = Retrieves(plan.mode) || HasWindow(plan.mode);
  const int longest = shapes_itself ? nodes : plan.lookahead;
  // A preempted sequence may still have some.
  if (sequence->draws) sequence->distributions.Clear();
  // A drafter whose proposals follow from the text has no distributions to tell.
  const bool tells_distributions =
      sequence->draws && InfoOf(drafter).distribution == ProposalDistribution::kDrawn;
  return {.sequence = sequence->id,
          .tokens = sequence->tokens,
          .sampling = &sequence->request.sampling,
          .history = &sequence->history,
          .taps = {taps_, &sequence->kv, parts_[drafter]},
          .prediction = sequence->request.prediction,
          .datastore = sequence->request.datastore.get(),
          .scope = sequence->request.prefix_scope,
          .lookahead = std::min(longest, sequence->DepthLimit()),
          .tree_width = plan.tree_width,
          .max_nodes = std::min(nodes, sequence->NodeLimit()),
          .window = plan.window,
          .guesses = plan.guesses,
          .row_prices = budget_.PricesFor(plan),
          .proposal = &sequence->proposal,
          .distributions = tells_distributions ? &sequence->distributions : nullptr};
}

void Drafters::Forget(SequenceId sequence) {
  for (const DraftersById* drafters : {&before_, &on_miss_}) {
    for (const auto& drafter : *drafters) {
      if (drafter != nullptr) drafter->Forget(sequence);
    }
  }
}

void Drafters::Remember(const EndedText& text) {
  for (const auto& drafter : before_) {
    if (drafter != nullptr) drafter->Remember(text);
  }
}

}  // namespace foretoken
