#include <algorithm>

#include "base/clock.h"
#include "draft/retrieval/speculation_length.h"
#include "engine/engine_impl.h"

namespace foretoken {
namespace {

double Us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

// Whether retrieval proposes what is worth its row.
bool IsPriced(const SpeculationPlan& plan) {
  if (plan.mode == Mode::kSssd) return plan.speculation_length == kAutoSpeculationLength;
  return plan.FallsBackOnRetrieval() &&
         (plan.speculation_length == kAutoSpeculationLength || plan.speculation_length == 0);
}

void FillPrices(const RowPrice& row_price, double other_rows, std::vector<double>* prices) {
  prices->resize(kMaxAutoSpeculationLength - 1);
  row_price.Fill(other_rows, *prices);
}

}  // namespace

int Engine::Impl::RetrievedNodes(const SpeculationPlan& plan) const {
  if (IsPriced(plan) && row_prices_.empty()) return plan.lookahead;  // Passes were not measured.
  const int wanted = plan.speculation_length >= 0 || IsPriced(plan)
                         ? plan.RetrievedNodes()
                         : SpeculationLength(times_.knee_rows, std::max(1, running())) - 1;
  return std::min(wanted, options_.max_nodes);
}

int Engine::Impl::NodesOf(const SpeculationPlan& plan) const {
  return Retrieves(plan.mode) ? RetrievedNodes(plan) : plan.nodes();
}

int Engine::Impl::MostNodes(const SpeculationPlan& plan) const {
  const int nodes = NodesOf(plan);
  return plan.FallsBackOnRetrieval() ? std::max(nodes, RetrievedNodes(plan)) : nodes;
}

void Engine::Impl::SetRowPrices() {
  if (row_price_.has_value()) FillPrices(*row_price_, row_price_->other_rows(), &row_prices_);
}

int Engine::Impl::OtherRows(const Sequence& sequence) const {
  int rows = 0;
  for (const auto& other : scheduler_.running()) {
    if (other.get() == &sequence || other->finish.has_value()) continue;
    // Those that do not speculate ahead propose later: likely as much as they just did.
    rows += 1 + (other->opened ? other->proposal : other->verified).size();
  }
  return rows;
}

void Engine::Impl::RetrieveOnMiss(Sequence* sequence) {
  DraftContext context = ContextFor(sequence);
  const int nodes = RetrievedNodes(sequence->plan);
  context.lookahead = std::min(nodes, sequence->DepthLimit());
  context.max_nodes = std::min(nodes, sequence->NodeLimit());
  if (!context.row_prices.empty()) {
    // What hits and earlier misses propose is known, so it is known which row is the first that
    // costs another tile: in the mean over rounds it is not. (At K = 1 and a batch of 8, where 16
    // rows fit and a 17th costs as much as three and a half, SSD was 4 % slower with retrieval than
    // without, now 1 to 2 %. Sparing it where what came of it was worth less than asking lost the
    // 2 % that it then gained at K = 2.)
    FillPrices(*row_price_, OtherRows(*sequence), &miss_prices_);
    context.row_prices = miss_prices_;
  }
  retrieval_.Propose(std::span(&context, 1));
}

std::span<const double> Engine::Impl::PricesFor(const SpeculationPlan& plan) const {
  return IsPriced(plan) ? std::span<const double>(row_prices_) : std::span<const double>();
}

void Engine::Impl::SpareUselessRetrieval() {
  const bool any_priced = std::ranges::any_of(
      contexts_, [](const DraftContext& context) { return !context.row_prices.empty(); });
  asked_in_round_ = any_priced && worth_in_rounds_.AskNow();
  if (!any_priced || asked_in_round_) return;
  std::erase_if(contexts_, [](const DraftContext& context) { return !context.row_prices.empty(); });
}

void Engine::Impl::SendRetrieved() {
  const auto has_datastore = [](const Sequence* sequence) {
    // Where proposals are drawn, what is prepared must not depend on the tokens drawn before.
    return sequence->opened && sequence->verifies && !sequence->draws &&
           sequence->request.datastore != nullptr;
  };
  for (Sequence* sequence : pass_) sequence->asked_for_cache = false;
  if (std::ranges::none_of(pass_, has_datastore) || !worth_in_cache_.AskNow()) return;
  for (Sequence* sequence : pass_) {
    if (!has_datastore(sequence)) continue;
    const std::int64_t start = NowNs();
    DraftContext context = ContextFor(sequence);
    context.lookahead = context.max_nodes = kDefaultTreeNodes;
    context.row_prices = {};
    context.proposal = &retrieved_;
    retrieval_.Propose(std::span(&context, 1));
    speculator_->SendRetrieved(sequence->id,
                               OutcomesBeside(sequence->proposal, retrieved_, retrieval_.scores()));
    sequence->asked_for_cache = true;
    worth_in_cache_.ObserveAsking(Us(NowNs() - start));
  }
}

void Engine::Impl::TeachRetrieval() {
  const auto worth_of = [this](const Sequence& sequence) {
    double tokens = sequence.accepted;
    const auto rows =
        std::min(static_cast<std::size_t>(sequence.verified.size()), row_prices_.size());
    for (std::size_t i = 0; i < rows; ++i) tokens -= row_prices_[i];
    return tokens;
  };
  int tokens = 0;
  for (Sequence* sequence : pass_) {
    tokens += static_cast<int>(sequence->emitted.size());
    const bool priced = sequence->plan.mode == Mode::kSssd && IsPriced(sequence->plan);
    if (asked_in_round_ && priced && sequence->verifies) {
      worth_in_rounds_.ObserveAnswer(worth_of(*sequence));
    }
  }
  if (pass_prefills_ || gap_ns_ < 0) return;
  const auto sequences = static_cast<int>(pass_.size());
  worth_in_rounds_.ObserveRound(sequences, tokens, Us(round_ns_));
  worth_in_cache_.ObserveRound(sequences, tokens, Us(round_ns_));
  if (!row_price_.has_value()) return;
  row_price_->Observe(sequences, static_cast<int>(batch_.rows.size()), tokens, Us(pass_ns_),
                      Us(round_ns_));
}

}  // namespace foretoken
