#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/prediction/plan_search.h"
#include "core/prediction/row_price.h"

namespace foretoken {
namespace {

const RankedPlan* FastestOf(std::span<const RankedPlan> ranked, Mode mode) {
  const auto found =
      std::ranges::find(ranked, mode, [](const RankedPlan& r) { return r.plan.mode; });
  return found == ranked.end() ? nullptr : &*found;
}

std::string Name(const SpeculationPlan& plan) {
  if (!plan.mode.drafts()) return "ar";
  if (PricesRows(plan.mode)) return std::string(ModeName(plan.mode));  // As long as pays.
  std::string name = fmt::format("{} (K = {}", ModeName(plan.mode), plan.lookahead);
  if (plan.mode.during()) {
    name +=
        fmt::format(", B = {}, fallback {}", plan.primary.budget(), FallbackName(plan.fallback));
  }
  return name + ")";
}

std::string Wait(const RankedPlan& ranked) {
  constexpr double kNoticeableUs = 1;
  if (ranked.prediction.wait_us < kNoticeableUs) return "never waits for a proposal";
  return fmt::format("waits {:.3g} ms a round for proposals", ranked.prediction.wait_us / 1e3);
}

std::string WhySsd(const RankedPlan& ssd, const RankedPlan* sd) {
  std::string why = fmt::format("Its cache answers {:.0f} % of the rounds, and the target {}",
                                100 * ssd.prediction.hit_rate, Wait(ssd));
  if (sd != nullptr) why += fmt::format("; in sd it {}", Wait(*sd));
  return why;
}

std::string WhySd(const RankedPlan& sd, const RankedPlan& ssd) {
  return fmt::format(
      "The proposals of ssd have {:.1f} tokens on average where sd's have {}, and {:.0f} % of its "
      "rounds miss the cache",
      ssd.prediction.target_rows - 1, sd.plan.lookahead, 100 * (1 - ssd.prediction.hit_rate));
}

std::string WhyAr(const RankedPlan& ar, const RankedPlan& rival) {
  const Prediction& prediction = rival.prediction;
  const double longer_us = prediction.round_us - ar.prediction.round_us;
  const std::string cause =
      prediction.wait_us > 0.5 * longer_us
          ? std::string("most of it waiting for proposals")
          : fmt::format("its pass has {:.1f} rows a sequence", prediction.target_rows);
  return fmt::format("A round of {} gives {:.2f} tokens but takes {:.2f} times as long: {}",
                     ModeName(rival.plan.mode), prediction.tokens_per_round,
                     prediction.round_us / ar.prediction.round_us, cause);
}

bool IsOfAnotherDraft(Mode mode, Mode other) {
  return NeedsDraft(mode) && NeedsDraft(other) && mode.drafter != other.drafter;
}

std::string WhyDraft(const RankedPlan& best, const RankedPlan& rival) {
  const auto round = [](const RankedPlan& ranked) {
    return fmt::format("{:.2f} tokens in {:.3g} ms", ranked.prediction.tokens_per_round,
                       ranked.prediction.round_us / 1e3);
  };
  return fmt::format("Of two drafts, a round of {} gives {} and one of {} {}",
                     ModeName(best.plan.mode), round(best), ModeName(rival.plan.mode),
                     round(rival));
}

std::string Why(std::span<const RankedPlan> ranked, const RankedPlan* rival) {
  const RankedPlan& best = ranked.front();
  if (rival == nullptr) return "Nothing else can be predicted from what is known";
  if (!best.plan.mode.drafts()) return WhyAr(best, *rival);
  if (IsOfAnotherDraft(best.plan.mode, rival->plan.mode)) return WhyDraft(best, *rival);
  if (best.plan.mode.during()) return WhySsd(best, FastestOf(ranked, Mode::kSd));
  if (NeedsDraft(best.plan.mode)) {
    if (const RankedPlan* ssd = FastestOf(ranked, Mode::kSsd)) return WhySd(best, *ssd);
  }
  return fmt::format("A round gives {:.2f} tokens, and the target {}",
                     best.prediction.tokens_per_round, Wait(best));
}

}  // namespace

std::string ExplainChoice(std::span<const RankedPlan> ranked) {
  const RankedPlan& best = ranked.front();
  const RankedPlan* rival = nullptr;
  std::vector<Mode> named = {best.plan.mode};
  std::string ratios;
  for (const RankedPlan& other : ranked) {
    if (std::ranges::find(named, other.plan.mode) != named.end()) continue;
    named.push_back(other.plan.mode);
    if (rival == nullptr) rival = &other;
    ratios += fmt::format("{} {:.2f}x {}", ratios.empty() ? ":" : ",",
                          best.prediction.tokens_per_second / other.prediction.tokens_per_second,
                          Name(other.plan));
  }
  return fmt::format("Choice: {}, {:.1f} tokens/s{}. {}.", Name(best.plan),
                     best.prediction.tokens_per_second, ratios, Why(ranked, rival));
}

}  // namespace foretoken
