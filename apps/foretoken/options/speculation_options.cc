// What the options of speculation mean.

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "apps/foretoken/options/options.h"

namespace foretoken {
namespace {

// "tree_width" is --tree-width here.
std::string OptionName(std::string_view field) {
  std::string name = fmt::format("--{}", field);
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace

Result<std::vector<DrafterId>> ParseDrafterIds(std::string_view option, std::string_view text) {
  std::vector<DrafterId> drafters;
  for (const std::string& name : SplitList(text)) {
    const auto named = std::ranges::find(kDrafters, name, &DrafterInfo::name);
    if (named == kDrafters.end()) {
      std::vector<std::string_view> known;
      for (const DrafterInfo& info : kDrafters) known.push_back(info.name);
      return Invalid("{}: '{}' is no drafter: choose among {}", option, name,
                     fmt::join(known, ", "));
    }
    drafters.push_back(static_cast<DrafterId>(named - kDrafters.begin()));
  }
  if (!text.empty() && drafters.empty()) {
    return Invalid("{} '{}' names no drafter", option, text);
  }
  return drafters;
}

int SpeculationOptions::MostLookahead() const {
  return plan.lookahead.value_or(std::max(kDefaultLookahead, kMaxPlannedLookahead));
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
  FT_ASSIGN_OR_RETURN(const Verification verify, ParseVerification(verification));
  for (const auto& [given, option, id] : {std::tuple(!stages.empty(), "stages", DrafterId::kStaged),
                                          {!ensemble.empty(), "ensemble", DrafterId::kEnsemble}}) {
    const Mode made{Schedule::kBefore, id};
    const auto uses = [made](Mode mode) { return mode == made || mode.planned(); };
    if (!given || std::ranges::any_of(modes, uses)) continue;
    return Invalid("--{} says what mode {} is made of, and neither that nor auto is chosen", option,
                   InfoOf(id).before);
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
  options.plan = plan;
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
