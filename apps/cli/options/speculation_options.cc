// What the options of speculation mean.

#include <fmt/format.h>

#include <algorithm>

#include "base/parse_number.h"
#include "cli/options/options.h"
#include "speculation/presets.h"

namespace foretoken {
namespace {

bool HasAny(std::span<const Mode> modes, std::initializer_list<Mode> wanted) {
  return std::ranges::find_first_of(modes, wanted) != modes.end();
}

// The whole of `text` as a fan-out; -1 where it is none.
int FanoutOf(std::string_view text, int least) {
  int fanout = -1;
  return ParseNumber(text, &fanout) && fanout >= least && fanout <= kMaxFanout ? fanout : -1;
}

// The shape of a fan-out that is given in numbers, for K = `lookahead`.
Result<FanoutShape> GivenShape(std::string_view option, const std::vector<int>& counts,
                               int lookahead) {
  if (counts.size() == 1) return UniformFanout(counts[0], lookahead);
  if (static_cast<int>(counts.size()) != lookahead + 1) {
    return InvalidInput(fmt::format(
        "{} has {} numbers; a proposal of K = {} tokens has {} outcome nodes, one number for each",
        option, counts.size(), lookahead, lookahead + 1));
  }
  FanoutShape shape;
  for (const int count : counts) shape.at.push_back(static_cast<std::uint8_t>(count));
  if (shape.budget() == 0) {
    return InvalidInput(fmt::format("{} prepares nothing: one number must be above 0", option));
  }
  return shape;
}

}  // namespace

Result<FanoutChoice> ParseFanout(std::string_view option, std::string_view text) {
  if (text == "uniform") return FanoutChoice{FanoutRule::kUniform, {}};
  if (text == "geometric") return FanoutChoice{FanoutRule::kGeometric, {}};
  if (text == "planned") return FanoutChoice{FanoutRule::kPlanned, {}};
  FanoutChoice choice{FanoutRule::kGiven, {}};
  const bool uniform = text.starts_with("uniform:");
  const std::vector<std::string> items = SplitList(uniform ? text.substr(8) : text);
  for (const std::string& item : items) {
    choice.counts.push_back(FanoutOf(item, items.size() == 1 ? 1 : 0));
  }
  const bool bad = std::ranges::find(choice.counts, -1) != choice.counts.end();
  if (choice.counts.empty() || bad || (uniform && choice.counts.size() > 1)) {
    return InvalidInput(
        fmt::format("{} '{}' is not a fan-out: write uniform:N with N from 1 to {}, uniform, "
                    "geometric, planned, or one number for every outcome node, like 4,3,3,2",
                    option, text, kMaxFanout));
  }
  return choice;
}

int SpeculationOptions::MostLookahead() const {
  return lookahead > 0 ? lookahead : std::max(kDefaultLookahead, PlanLimits().max_lookahead);
}

Status SpeculationOptions::CheckFor(std::span<const Mode> modes) const {
  const bool caches = HasAny(modes, {Mode::kSsd, Mode::kAuto});
  const auto of_ssd = [&](bool given, std::string_view option) -> Status {
    if (!given || caches) return {};
    return InvalidInput(fmt::format(
        "{} is about the speculation cache, which only modes ssd and auto have", option));
  };
  FT_RETURN_IF_ERROR(of_ssd(!fanout.empty(), "--fanout"));
  FT_RETURN_IF_ERROR(of_ssd(cache_budget > 0, "--cache-budget"));
  FT_RETURN_IF_ERROR(of_ssd(!fallback.empty(), "--fallback"));
  const bool rejects = verification == "rejection";
  for (const auto& [given, option] : {std::pair(saguaro_c != 1, "--saguaro-c"),
                                      std::pair(!cache_order.empty(), "--cache-order")}) {
    if (!given || (caches && rejects)) continue;
    return InvalidInput(fmt::format(
        "{} needs --verify rejection and mode ssd or auto: only there is it of any effect",
        option));
  }
  const bool listed = !fanout_after_fallback.empty() || fanout.find(',') != std::string::npos;
  if (listed && !HasAny(modes, {Mode::kSsd})) {
    return InvalidInput(
        "--fanout with a number for every outcome node and --fanout-after-fallback are for mode "
        "ssd: mode auto chooses K and shapes its caches, and other modes have none");
  }
  if (tree_width > 1 && !HasAny(modes, {Mode::kSd, Mode::kSsd})) {
    return InvalidInput(
        "--tree-width is for modes sd and ssd: mode auto chooses among chains, and other modes "
        "shape what they propose themselves");
  }
  if (!ssd_preset.empty() && !HasAny(modes, {Mode::kSsd})) {
    return InvalidInput(
        "--ssd-preset is for mode ssd: mode auto shapes its caches itself, and "
        "other modes have none");
  }
  return {};
}

// Fan-outs, as numbers or as a rule and a budget.
Status SpeculationOptions::ShapeCache(EngineOptions* options) const {
  SpeculationPlan& plan = options->plan;
  const int K = plan.lookahead;
  const int nodes = K + 1;
  FT_ASSIGN_OR_RETURN(const FanoutChoice choice,
                      ParseFanout("--fanout", fanout.empty() ? "uniform" : fanout));
  if (cache_budget > 0 && choice.rule == FanoutRule::kGiven) {
    return InvalidInput(
        fmt::format("--fanout {} says how large the cache is: give --cache-budget with uniform, "
                    "geometric or planned only",
                    fanout));
  }
  if (cache_budget > 0 && (cache_budget < nodes || cache_budget > kMaxFanout * nodes)) {
    return InvalidInput(fmt::format(
        "--cache-budget {} does not go with K = {}: its {} outcome nodes have a branch each at "
        "least and {} at most, {} to {} in all",
        cache_budget, K, nodes, kMaxFanout, nodes, std::min(kMaxFanout * nodes, kMaxCacheBudget)));
  }
  if (choice.rule == FanoutRule::kGiven) {
    FT_ASSIGN_OR_RETURN(plan.primary, GivenShape("--fanout", choice.counts, K));
  } else {
    plan.primary = EvenFanout(cache_budget > 0 ? cache_budget : kDefaultFanout * nodes, K);
  }
  plan.after_fallback = plan.primary;
  if (!fanout_after_fallback.empty()) {
    FT_ASSIGN_OR_RETURN(const FanoutChoice after,
                        ParseFanout("--fanout-after-fallback", fanout_after_fallback));
    const bool planned =
        choice.rule == FanoutRule::kGeometric || choice.rule == FanoutRule::kPlanned;
    if (after.rule != FanoutRule::kGiven || planned) {
      return InvalidInput(
          "--fanout-after-fallback takes numbers, beside a uniform --fanout or one in numbers: "
          "geometric and planned shape both by themselves");
    }
    FT_ASSIGN_OR_RETURN(plan.after_fallback,
                        GivenShape("--fanout-after-fallback", after.counts, K));
  }
  if (choice.rule == FanoutRule::kGeometric || choice.rule == FanoutRule::kPlanned) {
    plan.fanout = choice.rule;
  }
  PlannerSettings& planner = options->planner.emplace();
  if (!fanout.empty() && choice.rule != FanoutRule::kGiven) planner.fanout = choice.rule;
  if (choice.rule == FanoutRule::kGiven) {  // Mode auto takes its widths from it.
    planner.fanout = FanoutRule::kUniform;
    planner.limits.mean_fanouts = {};
    planner.limits.mean_fanouts.push_back(std::max(1, plan.primary.budget() / nodes));
  }
  planner.limits.cache_budget = cache_budget;
  return {};
}

Result<EngineOptions> SpeculationOptions::ToEngineOptions(int batch, int max_context) const {
  EngineOptions options;
  const int K = lookahead > 0 ? lookahead : kDefaultLookahead;
  if (ssd_preset.empty()) {
    options.plan.lookahead = K;
    FT_RETURN_IF_ERROR(ShapeCache(&options));
    FT_ASSIGN_OR_RETURN(options.plan.fallback, ParseFallback(fallback.empty() ? "jit" : fallback));
    if (!fallback.empty() && options.plan.fallback != Fallback::kAuto) {
      options.planner->limits.fallbacks = {};
      options.planner->limits.fallbacks.push_back(options.plan.fallback);
    }
    options.plan.tree_width = tree_width;
    options.plan.max_nodes = tree_nodes;
    if (tree_nodes > 0 && tree_width == 1) {
      return InvalidInput("--tree-nodes is for trees: give --tree-width 2 or more as well");
    }
    if (tree_width > 1 &&
        (options.plan.fanout != FanoutRule::kGiven || options.plan.fallback == Fallback::kAuto)) {
      return InvalidInput(
          "--fanout geometric and planned and --fallback auto are for chains: leave out "
          "--tree-width, or give numbers and a fallback's name");
    }
  } else {
    FT_ASSIGN_OR_RETURN(const SsdPreset preset, ParseSsdPreset(ssd_preset));
    options.plan = PresetPlan(preset, K);
  }
  if (lookahead > 0 && options.planner) options.planner->limits.max_lookahead = lookahead;
  if (!speculation_length.empty()) {
    FT_ASSIGN_OR_RETURN(options.plan.speculation_length,
                        ParseSpeculationLength(speculation_length));
  }
  options.plan.saguaro_c = saguaro_c;
  FT_ASSIGN_OR_RETURN(options.plan.cache_order,
                      ParseCacheOrder(cache_order.empty() ? "noise" : cache_order));
  FT_ASSIGN_OR_RETURN(options.verification, ParseVerification(verification));
  options.max_batch = batch;
  options.max_context = max_context;
  options.prefix_cache = prefix_cache;
  return options;
}

}  // namespace foretoken
