// What the options of speculation mean.

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "apps/foretoken/options/options.h"
#include "base/text/parse_number.h"

namespace foretoken {
namespace {

// The whole of `text` as a fan-out; -1 where it is none.
int FanoutOf(std::string_view text, int least) {
  int fanout = -1;
  return ParseNumber(text, &fanout) && fanout >= least && fanout <= kMaxFanout ? fanout : -1;
}

// The speculation length of modes that retrieve: "auto", "knee" or a number of rows.
Result<int> ParseSpeculationLength(std::string_view text) {
  int rows = 0;
  if (text == "auto") return kAutoSpeculationLength;
  if (text == "knee") return kKneeSpeculationLength;
  if (ParseNumber(text, &rows) && rows >= 2 && rows <= kMaxProposal + 1) return rows;
  return InvalidInput(
      fmt::format("--speculation-length '{}' is neither auto nor knee nor a number from 2 to {}",
                  text, kMaxProposal + 1));
}

// "tree_width" is --tree-width here.
std::string OptionName(std::string_view field) {
  std::string name = fmt::format("--{}", field);
  std::ranges::replace(name, '_', '-');
  return name;
}

// Sets `value` where the option was given; `parse` reads its text.
template <typename Value, typename Parse>
Status ParseGiven(const std::string& text, const Parse& parse, std::optional<Value>* value) {
  if (text.empty()) return {};
  FT_ASSIGN_OR_RETURN(*value, parse(text));
  return {};
}

}  // namespace

Result<Fanout> ParseFanout(std::string_view option, std::string_view text) {
  if (text == "uniform") return Fanout{FanoutRule::kUniform, {}};
  if (text == "geometric") return Fanout{FanoutRule::kGeometric, {}};
  if (text == "planned") return Fanout{FanoutRule::kPlanned, {}};
  Fanout choice{FanoutRule::kGiven, {}};
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

Result<std::vector<DrafterId>> ParseDrafterIds(std::string_view option, std::string_view text) {
  std::vector<DrafterId> drafters;
  for (const std::string& name : SplitList(text)) {
    const auto named = std::ranges::find(kDrafters, name, &DrafterInfo::name);
    if (named == kDrafters.end()) {
      std::vector<std::string_view> known;
      for (const DrafterInfo& info : kDrafters) known.push_back(info.name);
      return InvalidInput(fmt::format("{}: '{}' is no drafter: choose among {}", option, name,
                                      fmt::join(known, ", ")));
    }
    drafters.push_back(static_cast<DrafterId>(named - kDrafters.begin()));
  }
  if (!text.empty() && drafters.empty()) {
    return InvalidInput(fmt::format("{} '{}' names no drafter", option, text));
  }
  return drafters;
}

int SpeculationOptions::MostLookahead() const {
  return lookahead.value_or(std::max(kDefaultLookahead, kMaxPlannedLookahead));
}

Result<PlanOptions> SpeculationOptions::Parse() const {
  PlanOptions plan;
  plan.lookahead = lookahead;
  if (tree_width > 1) plan.tree_width = tree_width;
  plan.tree_nodes = tree_nodes;
  plan.window = window;
  plan.guesses = guesses;
  plan.cache_budget = cache_budget;
  if (saguaro_c != 1) plan.saguaro_c = saguaro_c;
  const auto fanout_of = [](std::string_view option) {
    return [option](std::string_view text) { return ParseFanout(option, text); };
  };
  FT_RETURN_IF_ERROR(ParseGiven(fanout, fanout_of("--fanout"), &plan.fanout));
  FT_RETURN_IF_ERROR(ParseGiven(fanout_after_fallback, fanout_of("--fanout-after-fallback"),
                                &plan.fanout_after_fallback));
  FT_RETURN_IF_ERROR(ParseGiven(fallback, ParseFallback, &plan.fallback));
  FT_RETURN_IF_ERROR(ParseGiven(ssd_preset, ParseSsdPreset, &plan.ssd_preset));
  FT_RETURN_IF_ERROR(
      ParseGiven(speculation_length, ParseSpeculationLength, &plan.speculation_length));
  FT_RETURN_IF_ERROR(ParseGiven(cache_order, ParseCacheOrder, &plan.cache_order));
  return plan;
}

Result<LossyRule> SpeculationOptions::ParseLossyRule() const {
  LossyRule rule = lossy_rule;
  FT_ASSIGN_OR_RETURN(rule.kind, ParseLossy(lossy));
  const LossyRule usual;
  const bool typical = rule.epsilon != usual.epsilon || rule.delta != usual.delta;
  const bool relaxed = rule.top_k != usual.top_k || rule.margin != usual.margin;
  if (typical && rule.kind != Lossy::kTypical) {
    return InvalidInput("--lossy-epsilon and --lossy-delta are of --lossy typical");
  }
  if (relaxed && rule.kind != Lossy::kTopKRelaxed) {
    return InvalidInput("--lossy-top-k and --lossy-margin are of --lossy top-k-relaxed");
  }
  const bool judge = !rule.judge.empty() || rule.approval != usual.approval;
  if (judge && rule.kind != Lossy::kJudge) {
    return InvalidInput("--lossy-judge and --lossy-approval are of --lossy judge");
  }
  if (rule.kind == Lossy::kJudge && rule.judge.empty()) {
    return InvalidInput(
        "--lossy judge needs --lossy-judge FOLDER, a head as foretoken_train judge makes it");
  }
  return rule;
}

Status SpeculationOptions::CheckFor(std::span<const Mode> modes) const {
  FT_ASSIGN_OR_RETURN(const PlanOptions plan, Parse());
  FT_ASSIGN_OR_RETURN(const Verification verify, ParseVerification(verification));
  for (const auto& [given, option, id] : {std::tuple(!stages.empty(), "stages", DrafterId::kStaged),
                                          {!ensemble.empty(), "ensemble", DrafterId::kEnsemble}}) {
    const Mode made{Schedule::kBefore, id};
    const auto uses = [made](Mode mode) { return mode == made || mode.planned(); };
    if (!given || std::ranges::any_of(modes, uses)) continue;
    return InvalidInput(
        fmt::format("--{} says what mode {} is made of, and neither that nor auto is chosen",
                    option, InfoOf(id).before));
  }
  const auto proposes = [](Mode mode) { return mode.drafts() || mode.planned(); };
  if (is_lossy() && std::ranges::none_of(modes, proposes)) {
    return InvalidInput(
        "--lossy is about what proposals are accepted, and mode ar proposes nothing");
  }
  return CheckOptions(plan, modes, verify, OptionName);
}

Result<EngineOptions> SpeculationOptions::ToEngineOptions(int batch, int max_context) const {
  EngineOptions options;
  FT_ASSIGN_OR_RETURN(options.plan, Parse());
  FT_RETURN_IF_ERROR(CheckShapes(options.plan, OptionName));
  FT_ASSIGN_OR_RETURN(options.verification, ParseVerification(verification));
  FT_ASSIGN_OR_RETURN(options.stages, ParseDrafterIds("--stages", stages));
  FT_ASSIGN_OR_RETURN(options.ensemble, ParseDrafterIds("--ensemble", ensemble));
  FT_ASSIGN_OR_RETURN(options.lossy, ParseLossyRule());
  options.max_batch = batch;
  if (max_context > 0) options.max_context = max_context;
  options.prefix_cache = prefix_cache;
  return options;
}

}  // namespace foretoken
