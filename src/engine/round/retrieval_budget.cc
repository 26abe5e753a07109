#include "engine/round/retrieval_budget.h"

#include <algorithm>

#include "draft/retrieval/speculation_length.h"

namespace foretoken {
namespace {

// Whether the mode's drafter can propose what is worth its row, before the pass.
bool CanPrice(Mode mode) {
  return mode.before() && InfoOf(mode.drafter).shape == ProposalShape::kPricedTree;
}

// Whether retrieval proposes what is worth its row.
bool IsPriced(const SpeculationPlan& plan) {
  if (CanPrice(plan.mode)) return plan.speculation_length == kAutoSpeculationLength;
  return plan.FallsBackOnRetrieval() &&
         (plan.speculation_length == kAutoSpeculationLength || plan.speculation_length == 0);
}

bool HasPrice(const DraftContext& context) { return !context.row_prices.empty(); }

void FillPrices(const RowPrice& row_price, double other_rows, std::vector<double>* prices) {
  prices->resize(kMaxAutoSpeculationLength - 1);
  row_price.Fill(other_rows, *prices);
}

}  // namespace

RetrievalBudget::RetrievalBudget(const MeasuredTimes& times, int max_nodes)
    : max_nodes_(max_nodes), knee_rows_(times.knee_rows) {
  if (!times.row_times.rows().empty()) row_price_.emplace(times.row_times);
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
  const int wanted = plan.speculation_length >= 0 || IsPriced(plan)
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
  const auto rows = std::min(static_cast<std::size_t>(sequence.verified.size()), prices_.size());
  for (std::size_t i = 0; i < rows; ++i) tokens -= prices_[i];
  return tokens;
}

void RetrievalBudget::ObserveRound(const Round& round) {
  for (const Sequence* sequence : round.pass) {
    const bool priced = CanPrice(sequence->plan.mode) && IsPriced(sequence->plan);
    if (asked_ && priced && sequence->verifies) worth_.ObserveAnswer(WorthOf(*sequence));
  }
  if (round.prefills || round.gap_ns < 0) return;
  const auto sequences = static_cast<int>(round.pass.size());
  const int tokens = EmittedTokens(round);
  worth_.ObserveRound(sequences, tokens, Microseconds(round.all_ns));
  if (!row_price_.has_value()) return;
  row_price_->Observe(sequences, round.rows, tokens, Microseconds(round.pass_ns),
                      Microseconds(round.all_ns));
}

}  // namespace foretoken
