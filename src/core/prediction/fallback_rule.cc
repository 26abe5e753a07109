#include "core/prediction/fallback_rule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "core/prediction/fanout_solver.h"
#include "core/prediction/plan_search.h"

namespace foretoken {
namespace {

// The tokens of a round on what `proposer` proposes; null: nothing.
double TokensOn(const ProposerModel* proposer, int lookahead) {
  if (proposer == nullptr) return 1;
  const double tokens = ExpectedTokens(OutcomeNodes(proposer->acceptance, lookahead));
  return 1 + proposer->coverage * (tokens - 1);
}

Fallback FastFallback(const CostModel& model, int lookahead) {
  Fallback best = Fallback::kNone;
  for (const Fallback fallback : kFallbacks) {
    if (fallback.kind != Fallback::Kind::kDrafter || InfoOf(fallback.drafter).baseline) continue;
    const ProposerModel* proposer = model.proposer(fallback);
    if (!proposer->measured()) continue;
    if (TokensOn(proposer, lookahead) > TokensOn(model.proposer(best), lookahead)) best = fallback;
  }
  return best;
}

}  // namespace

double CriticalBatch(double p_hit, double E_hit, double E_miss, double T_p) {
  FT_CHECK(p_hit >= 0 && p_hit <= 1, "{} is not a probability", p_hit);
  FT_CHECK(T_p >= 0 && T_p <= 1, "T_p is {}: Theorem 17 holds up to 1", T_p);
  constexpr double kAlwaysSlow = std::numeric_limits<double>::infinity();
  const double tokens = p_hit * E_hit + (1 - p_hit) * E_miss;
  if (p_hit == 1) return kAlwaysSlow;  // Nothing ever falls back.
  if (T_p == 0) return E_hit >= tokens ? kAlwaysSlow : 0;
  const double all_hit = 1 + (1 - E_hit / tokens) / T_p;  // p_hit^(b*)
  if (all_hit >= 1) return 0;
  if (all_hit <= 0) return kAlwaysSlow;
  return p_hit == 0 ? 0 : std::log(all_hit) / std::log(p_hit);
}

std::optional<FallbackRule> FindFallbackRule(const CostModel& model, const SpeculationPlan& plan,
                                             double context) {
  if (!model.draft_model().measured() || model.target.rows().empty()) return std::nullopt;
  FT_CHECK(plan.mode.during());
  const int K = plan.lookahead;
  const auto speed = [&](Fallback fallback, int batch) {
    const SpeculationPlan ssd = PlanSsd(model, K, plan.primary.budget(), fallback);
    return Predict(model, ssd, {.batch = batch, .context = context});
  };
  FallbackRule rule{.fast = FastFallback(model, K)};
  rule.p_hit = std::clamp(speed(Fallback::kJit, 1).hit_rate, 0.0, 1.0);
  rule.E_hit = TokensOn(&model.draft_model(), K);
  rule.E_miss = TokensOn(model.proposer(rule.fast), K);
  const DraftPassShape& passes = model.first_draft().pass;
  const double drafting_us =
      passes.Count(K) * model.first_draft().apart.us(passes.Rows(K), context);
  rule.T_p = std::min(1.0, drafting_us / model.target.us(1 + passes.Longest(K), context));
  rule.b_star = CriticalBatch(rule.p_hit, rule.E_hit, rule.E_miss, rule.T_p);
  // What held at a batch holds beyond: every sequence more makes waiting for all rarer.
  for (int batch = 1; batch <= FallbackRule::kMostBatch && rule.crossover == 0;
       batch = std::max(batch + 1, batch * 5 / 4)) {
    const bool fast =
        speed(rule.fast, batch).tokens_per_second >= speed(Fallback::kJit, batch).tokens_per_second;
    if (fast) rule.crossover = batch;
  }
  return rule;
}

std::string ExplainFallbackRule(const FallbackRule& rule) {
  const std::string fast(FallbackName(rule.fast));
  const bool always = std::isinf(rule.b_star);
  const std::string_view where = always            ? "at every batch size, before "
                                 : rule.b_star < 1 ? "at no batch size, "
                                                   : "below that batch size, from it on ";
  const std::string text = fmt::format(
      "b* = {:.3g}: a just-in-time draft is worth waiting for {}{}{} (Theorem 17 with p_hit = "
      "{:.2f}, E_hit = {:.2f}, E_miss = {:.2f}, T_p = {:.2f}). Here, where such a draft holds no "
      "other sequence up, predictions favour ",
      rule.b_star, where, fast, always ? "" : " is better", rule.p_hit, rule.E_hit, rule.E_miss,
      rule.T_p);
  if (rule.crossover == 0) {
    return text + fmt::format("it at every batch size up to {}.", FallbackRule::kMostBatch);
  }
  return text + fmt::format("{} from batch {} on.", fast, rule.crossover);
}

}  // namespace foretoken
