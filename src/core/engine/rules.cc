#include "core/engine/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/speculation/lossy.h"
#include "core/speculation/presets.h"

namespace foretoken {
namespace {

constexpr int kMaxStopStrings = 128;

template <typename... Values>
Error Wrong(std::string_view field, fmt::format_string<Values...> sentence, Values&&... values) {
  return InvalidInput(fmt::format(sentence, std::forward<Values>(values)...), std::string(field));
}

// Whether a plan's tree width says what the mode proposes.
bool ShapesAsPlanned(Mode mode) {
  return mode.drafts() && InfoOf(mode.drafter).shape == ProposalShape::kAsPlanned;
}

// Refuses a window of W columns and G n-grams, of K tokens each, that does not fit a proposal.
Status CheckWindow(int window, int guesses, int lookahead, FieldSpelling spell) {
  const int nodes = (window + guesses) * lookahead;
  if (nodes <= kMaxProposal) return {};
  return Wrong("lookahead_window",
               "mode lookahead proposes (W + G) K = ({} + {}) x {} = {} tokens, more than {}: give "
               "a smaller {}, {} or {}",
               window, guesses, lookahead, nodes, kMaxProposal, spell("lookahead_window"),
               spell("lookahead_guesses"), spell("lookahead"));
}

// W and G of mode lookahead, where the options have them.
Status CheckWindowOptions(const PlanOptions& options, std::span<const Mode> modes,
                          FieldSpelling spell) {
  if (std::ranges::any_of(modes, HasWindow)) {
    const SpeculationPlan plan;
    return CheckWindow(options.lookahead_window.value_or(plan.window),
                       options.lookahead_guesses.value_or(plan.guesses),
                       options.lookahead.value_or(plan.lookahead), spell);
  }
  for (const auto& [given, field] :
       {std::pair(options.lookahead_window.has_value(), "lookahead_window"),
        std::pair(options.lookahead_guesses.has_value(), "lookahead_guesses")}) {
    if (!given) continue;
    return Wrong(field, "{} is for mode lookahead: no other mode has a window of guesses",
                 spell(field));
  }
  return {};
}

// The shape of a fan-out that is given in numbers, for K = `lookahead`.
Result<FanoutShape> GivenShape(std::string_view field, const std::vector<int>& counts,
                               int lookahead, FieldSpelling spell) {
  for (const int count : counts) {
    FT_RETURN_IF_ERROR(CheckRange(spell(field), count, 0, kMaxFanout, field));
  }
  if (counts.size() == 1) return UniformFanout(counts[0], lookahead);
  if (std::ssize(counts) != lookahead + 1) {
    return Wrong(field,
                 "{} has {} numbers; a proposal of K = {} tokens has {} outcome nodes: give one "
                 "number for all, or {}",
                 spell(field), counts.size(), lookahead, lookahead + 1, lookahead + 1);
  }
  FanoutShape shape;
  for (const int count : counts) shape.at.push_back(static_cast<std::uint8_t>(count));
  if (shape.budget() == 0) {
    return Wrong(field, "{} prepares nothing: one number must be above 0", spell(field));
  }
  return shape;
}

Status CheckBudget(int budget, const Fanout& fanout, int lookahead, FieldSpelling spell) {
  const int nodes = lookahead + 1;
  if (fanout.rule == FanoutRule::kGiven) {
    return Wrong("cache_budget",
                 "{} in numbers says how large the cache is: give {} with uniform, geometric or "
                 "planned only",
                 spell("fanout"), spell("cache_budget"));
  }
  if (budget >= nodes && budget <= kMaxFanout * nodes) return {};
  return Wrong("cache_budget",
               "{} {} does not go with K = {}: its {} outcome nodes have a branch each at "
               "least and {} at most, {} to {} in all",
               spell("cache_budget"), budget, lookahead, nodes, kMaxFanout, nodes,
               std::min(kMaxFanout * nodes, kMaxCacheBudget));
}

bool IsPlanned(FanoutRule rule) {
  return rule == FanoutRule::kGeometric || rule == FanoutRule::kPlanned;
}

// Fan-outs, as numbers or as a rule and a budget.
Status ShapeCache(const PlanOptions& options, FieldSpelling spell, SpeculationPlan* plan) {
  const int K = plan->lookahead;
  const Fanout fanout = options.fanout.value_or(Fanout{});
  if (options.cache_budget) {
    FT_RETURN_IF_ERROR(CheckBudget(*options.cache_budget, fanout, K, spell));
  }
  plan->fanout = IsPlanned(fanout.rule) ? fanout.rule : FanoutRule::kGiven;
  if (fanout.rule == FanoutRule::kGiven) {
    FT_ASSIGN_OR_RETURN(plan->primary, GivenShape("fanout", fanout.counts, K, spell));
  } else {
    plan->primary = EvenFanout(options.cache_budget.value_or(kDefaultFanout * (K + 1)), K);
  }
  plan->after_fallback = plan->primary;
  if (!options.fanout_after_fallback) return {};
  const Fanout& after = *options.fanout_after_fallback;
  if (after.rule != FanoutRule::kGiven || IsPlanned(fanout.rule)) {
    return Wrong("fanout_after_fallback",
                 "{} takes numbers, beside a uniform {} or one in numbers: geometric and "
                 "planned shape both by themselves",
                 spell("fanout_after_fallback"), spell("fanout"));
  }
  FT_ASSIGN_OR_RETURN(plan->after_fallback,
                      GivenShape("fanout_after_fallback", after.counts, K, spell));
  return {};
}

Status ShapeProposals(const PlanOptions& options, FieldSpelling spell, SpeculationPlan* plan) {
  if (options.tree_width) plan->tree_width = *options.tree_width;
  if (options.tree_nodes) plan->max_nodes = options.tree_nodes;
  if (options.fallback) plan->fallback = *options.fallback;
  if (options.fanout || options.fanout_after_fallback || options.cache_budget) {
    FT_RETURN_IF_ERROR(ShapeCache(options, spell, plan));
  } else if (std::ssize(plan->primary.at) != plan->lookahead + 1) {
    // As wide as before, for other nodes.
    plan->primary = UniformFanout(std::max(1, plan->primary.widest()),
                                  std::clamp(plan->lookahead, 0, kMaxProposal));
    plan->after_fallback = plan->primary;
  }
  if (options.tree_nodes && plan->tree_width == 1) {
    return Wrong("tree_nodes", "{} is for trees: give {} 2 or more as well", spell("tree_nodes"),
                 spell("tree_width"));
  }
  if (plan->tree_width > 1 &&
      (plan->fanout != FanoutRule::kGiven || plan->fallback == Fallback::kAuto)) {
    return Wrong("tree_width",
                 "{} geometric and planned and {} auto are for chains: leave out {}, or give "
                 "numbers and a fallback's name",
                 spell("fanout"), spell("fallback"), spell("tree_width"));
  }
  return {};
}

Status CheckAdapter(const AdapterUse& use, int adapters) {
  if (use.index < -1 || use.index >= adapters) {
    return Wrong("lora", "adapter {} was asked for, but the model was loaded with {}", use.index,
                 adapters);
  }
  if (!std::isfinite(use.scale)) return Wrong("lora", "an adapter's scale is {}", use.scale);
  return {};
}

}  // namespace

bool HasWindow(Mode mode) {
  return mode.drafts() && InfoOf(mode.drafter).shape == ProposalShape::kWindow;
}

Status CheckRange(std::string_view what, std::int64_t value, std::int64_t low, std::int64_t high,
                  std::string_view field) {
  if (value >= low && value <= high) return {};
  return Wrong(field, "{} must be from {} to {}, not {}", what, low, high, value);
}

Status CheckOptions(const PlanOptions& options, std::span<const Mode> modes,
                    Verification verification, FieldSpelling spell) {
  const bool ahead = std::ranges::any_of(modes, &Mode::during);
  const bool caches = ahead || std::ranges::any_of(modes, &Mode::planned);
  for (const auto& [given, field] : {std::pair(options.fanout.has_value(), "fanout"),
                                     std::pair(options.cache_budget.has_value(), "cache_budget"),
                                     std::pair(options.fallback.has_value(), "fallback")}) {
    if (!given || caches) continue;
    return Wrong(field, "{} is about the speculation cache, which only modes ssd and auto have",
                 spell(field));
  }
  const bool rejects = verification == Verification::kRejection;
  for (const auto& [given, field] : {std::pair(options.saguaro_c.value_or(1) != 1, "saguaro_c"),
                                     std::pair(options.cache_order.has_value(), "cache_order")}) {
    if (!given || (caches && rejects)) continue;
    return Wrong(field,
                 "{} needs {} rejection and mode ssd or auto: only there is it "
                 "of any effect",
                 spell(field), spell("verify"));
  }
  const bool listed =
      options.fanout_after_fallback || (options.fanout && options.fanout->counts.size() > 1);
  if (listed && !ahead) {
    return Wrong("fanout",
                 "{} with a number for every outcome node and {} are for mode ssd: mode auto "
                 "chooses K and shapes its caches, and other modes have none",
                 spell("fanout"), spell("fanout_after_fallback"));
  }
  if (options.tree_width.value_or(1) > 1 && std::ranges::none_of(modes, ShapesAsPlanned)) {
    return Wrong("tree_width",
                 "{} is for modes sd and ssd: mode auto chooses among chains, and other modes "
                 "shape what they propose themselves",
                 spell("tree_width"));
  }
  if (options.ssd_preset && !ahead) {
    return Wrong("ssd_preset",
                 "{} is for mode ssd: mode auto shapes its caches itself, and "
                 "other modes have none",
                 spell("ssd_preset"));
  }
  return CheckWindowOptions(options, modes, spell);
}

Result<SpeculationPlan> ApplyOptions(const PlanOptions& options, const SpeculationPlan& base,
                                     FieldSpelling spell) {
  SpeculationPlan plan = base;
  if (options.lookahead) {
    if (*options.lookahead != 0) {  // Zero is refused where K counts (CheckPlan).
      FT_RETURN_IF_ERROR(
          CheckRange(spell("lookahead"), *options.lookahead, 1, kMaxProposal, "lookahead"));
    }
    plan.lookahead = *options.lookahead;
    plan.speculation_length.reset();  // The caller's own number counts.
  }
  if (options.ssd_preset) {
    plan = PresetPlan(*options.ssd_preset, plan.lookahead);
  } else {
    FT_RETURN_IF_ERROR(ShapeProposals(options, spell, &plan));
  }
  // One of W and G is beside the other at least.
  const auto set = [&](std::optional<int> value, std::string_view field, int* place) -> Status {
    if (!value) return {};
    FT_RETURN_IF_ERROR(CheckRange(spell(field), *value, 1, kMaxProposal - 1, field));
    *place = *value;
    return {};
  };
  FT_RETURN_IF_ERROR(set(options.lookahead_window, "lookahead_window", &plan.window));
  FT_RETURN_IF_ERROR(set(options.lookahead_guesses, "lookahead_guesses", &plan.guesses));
  if (options.mode) plan.mode = *options.mode;
  if (options.speculation_length) plan.speculation_length = options.speculation_length;
  if (options.saguaro_c) plan.saguaro_c = *options.saguaro_c;
  if (options.cache_order) plan.cache_order = *options.cache_order;
  return plan;
}

Status CheckShapes(const PlanOptions& options, FieldSpelling spell) {
  const int lookahead = options.lookahead.value_or(SpeculationPlan().lookahead);
  FT_RETURN_IF_ERROR(CheckRange(spell("lookahead"), lookahead, 1, kMaxProposal, "lookahead"));
  FT_RETURN_IF_ERROR(ApplyOptions(options, DefaultPlan(lookahead), spell));
  return {};
}

std::optional<PlannerSettings> PlannerSettingsFor(const PlanOptions& options,
                                                  const SpeculationPlan& plan) {
  if (options.ssd_preset) return std::nullopt;
  PlannerSettings settings;
  PlanLimits& limits = settings.limits;
  if (options.fanout && options.fanout->rule == FanoutRule::kGiven) {
    // Mode auto takes its widths from it.
    settings.fanout = FanoutRule::kUniform;
    limits.mean_fanouts = {std::max(1, plan.primary.budget() / (plan.lookahead + 1))};
  } else if (options.fanout) {
    settings.fanout = options.fanout->rule;
  }
  limits.cache_budget = options.cache_budget;
  if (options.lookahead) limits.max_lookahead = *options.lookahead;
  if (options.fallback && *options.fallback != Fallback::kAuto) {
    limits.fallbacks = {};
    limits.fallbacks.push_back(*options.fallback);
  }
  return settings;
}

SpeculationPlan DefaultPlan(int lookahead) {
  SpeculationPlan plan{.lookahead = lookahead};
  plan.primary = EvenFanout(kDefaultFanout * (lookahead + 1), lookahead);
  plan.after_fallback = plan.primary;
  return plan;
}

SpeculationPlan CompletePlan(SpeculationPlan plan) {
  const int lookahead = std::clamp(plan.lookahead, 0, kMaxProposal);
  for (FanoutShape* shape : {&plan.primary, &plan.after_fallback}) {
    if (shape->at.empty()) *shape = UniformFanout(kDefaultFanout, lookahead);
  }
  return plan;
}

EngineSizes SizesFor(const EngineConfig& config, const ModelConfig& target) {
  const SpeculationPlan plan = CompletePlan(config.plan);
  EngineSizes sizes;
  sizes.lookahead = config.max_lookahead.value_or(plan.lookahead);
  int nodes = std::max({plan.nodes(), plan.RetrievedNodes(), sizes.lookahead});
  if (plan.fallback == Fallback::kRetrieval) {  // Also of requests with mode ssd.
    nodes = std::max(nodes, kMaxAutoSpeculationLength - 1);
  }
  sizes.nodes = config.max_nodes.value_or(nodes);
  // A shape counts the nodes of a chain; in a tree there are as many more branches as nodes.
  const int widening = std::max(1, (plan.nodes() + 1) / (plan.lookahead + 1));
  const int budget = std::max(plan.primary.budget(), plan.after_fallback.budget()) * widening;
  sizes.cache_budget = config.max_cache_budget.value_or(std::min(budget, kMaxCacheBudget));
  sizes.context = std::min(config.max_context.value_or(target.max_positions), target.max_positions);
  sizes.kv_tokens =
      config.kv_tokens.value_or(BlocksFor(sizes.context + 1) * kBlockSize * config.max_batch);
  return sizes;
}

Status ValidateConfig(const EngineConfig& config, const EngineSizes& sizes) {
  FT_RETURN_IF_ERROR(CheckRange("the largest lookahead", sizes.lookahead, 1, kMaxProposal));
  FT_RETURN_IF_ERROR(CheckRange("the largest proposal", sizes.nodes, 1, kMaxProposal));
  FT_RETURN_IF_ERROR(
      CheckRange("the largest cache budget", sizes.cache_budget, 1, kMaxCacheBudget));
  FT_RETURN_IF_ERROR(CheckRange("the batch size", config.max_batch, 1, 256));
  FT_RETURN_IF_ERROR(CheckRange("the prefill chunk", config.prefill_chunk, 1, 8192));
  FT_RETURN_IF_ERROR(CheckRange("the context", sizes.context, 2, 1 << 24));
  FT_RETURN_IF_ERROR(CheckLossyRule(config.lossy));
  if (config.lossy.kind != Lossy::kNone && config.verification == Verification::kRejection) {
    return InvalidInput(
        "rejection verification keeps the model's distribution, which a lossy rule gives up: give "
        "one of them",
        "lossy");
  }
  if (config.lossy.kind != Lossy::kNone && config.script.has_value()) {
    return InvalidInput("a script says what is accepted, so no lossy rule can: give one of them",
                        "lossy");
  }
  if (BlocksFor(sizes.kv_tokens) < BlocksFor(sizes.context)) {
    return Invalid("{} KV slots cannot hold one sequence of {} tokens", sizes.kv_tokens,
                   sizes.context);
  }
  return {};
}

// The tokens of a request's `field`.
Status CheckTokens(std::string_view field, std::span<const Token> tokens, int vocabulary) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary) {
      return Wrong(field, "{} token {} is {}, outside the vocabulary of {}", field, i, tokens[i],
                   vocabulary);
    }
  }
  return {};
}

Status CheckRequest(const Request& request, const RequestBounds& bounds) {
  if (request.prompt.empty()) {
    return InvalidInput("the prompt is empty: give at least one token", "prompt");
  }
  FT_RETURN_IF_ERROR(CheckTokens("prompt", request.prompt, bounds.vocabulary));
  FT_RETURN_IF_ERROR(CheckTokens("prediction", request.prediction, bounds.vocabulary));
  if (std::ssize(request.prompt) >= bounds.max_context) {
    return Wrong("prompt",
                 "the prompt has {} tokens, but the context holds {} and needs room for at "
                 "least one more: shorten the prompt",
                 request.prompt.size(), bounds.max_context);
  }
  FT_RETURN_IF_ERROR(CheckAdapter(request.adapter, bounds.adapters));
  FT_RETURN_IF_ERROR(CheckRange("the number of tokens whose log-probabilities come with the prompt",
                                request.prompt_logprobs, -1, kMaxTopLogprobs, "prompt_logprobs"));
  const bool embeds = request.embedding.has_value();
  if (embeds && (request.stop.max_tokens != 0 || request.prompt_logprobs >= 0)) {
    return InvalidInput(
        "a request for an embedding gives nothing else: max tokens must be 0, and no "
        "log-probabilities of the prompt asked for",
        request.stop.max_tokens != 0 ? "max_tokens" : "prompt_logprobs");
  }
  const int least = embeds || request.prompt_logprobs >= 0 ? 0 : 1;
  if (request.stop.max_tokens < least) {
    return Wrong("max_tokens", "max tokens must be at least {}, not {}", least,
                 request.stop.max_tokens);
  }
  if (!request.stop.stop_strings.empty() && !bounds.has_tokenizer) {
    return InvalidInput("stop strings need a tokenizer, and this model has none", "stop_strings");
  }
  if (request.stop.stop_strings.size() > kMaxStopStrings) {
    return Wrong("stop_strings", "{} stop strings were given; at most {} are allowed",
                 request.stop.stop_strings.size(), kMaxStopStrings);
  }
  for (const std::string& stop : request.stop.stop_strings) {
    if (stop.empty()) {
      return InvalidInput("a stop string is empty: give at least one character", "stop_strings");
    }
  }
  if (request.sampling.constraint != nullptr && request.stop.ignore_eos) {
    return InvalidInput(
        "ignoring end of sequence does not go with a grammar, which says where the text ends",
        "ignore_eos");
  }
  return ValidateSamplingParams(request.sampling, bounds.vocabulary);
}

SpeculationPlan FitTree(SpeculationPlan plan, const RequestBounds& bounds) {
  // The likeliest nodes come first, so a smaller tree is the best of its size.
  if (plan.tree_width > 1 && !plan.max_nodes.has_value()) {
    plan.max_nodes = std::min(plan.nodes(), bounds.max_nodes);
  }
  return plan;
}

Status CheckPlan(const SpeculationPlan& plan, const RequestBounds& bounds) {
  if (std::ranges::find(bounds.offered, plan.mode) == bounds.offered.end()) {
    return Wrong("mode", "mode {} was not set up for this engine", ModeName(plan.mode));
  }
  const bool needs_lookahead = plan.mode.drafts();
  FT_RETURN_IF_ERROR(CheckRange("lookahead", plan.lookahead, needs_lookahead ? 1 : 0,
                                bounds.max_lookahead, "lookahead"));
  if (!needs_lookahead) return {};
  FT_RETURN_IF_ERROR(CheckRange("tree width", plan.tree_width, 1, kMaxTreeWidth, "tree_width"));
  if (HasWindow(plan.mode)) {
    FT_RETURN_IF_ERROR(CheckWindow(plan.window, plan.guesses, plan.lookahead, PlainSpelling));
  }
  const bool retrieves = Retrieves(plan.mode) || plan.FallsBackOnRetrieval();
  if (retrieves) {
    FT_RETURN_IF_ERROR(CheckRange("the speculation length", plan.RetrievedNodes() + 1, 1,
                                  kMaxProposal + 1, "speculation_length"));
  }
  FT_RETURN_IF_ERROR(CheckRange("the number of proposal nodes", plan.nodes(), 1, bounds.max_nodes,
                                plan.tree_width > 1 ? "tree_width" : "lookahead"));
  if (retrieves && plan.measures_length() && !bounds.knows_row_times) {
    return InvalidInput("speculation length auto or knee needs the target's passes to be measured",
                        "speculation_length");
  }
  if (!plan.mode.during()) return {};
  if (!(plan.saguaro_c >= 0 && plan.saguaro_c <= 1)) {
    return Wrong("saguaro_c",
                 "C of Saguaro sampling is {}; it must be between 0 and 1, "
                 "where 1 changes nothing",
                 plan.saguaro_c);
  }
  if (plan.open() && std::ranges::none_of(bounds.offered, &Mode::planned)) {
    return InvalidInput(
        "a planned fan-out and fallback auto need mode auto, which was not set up for this engine",
        plan.fallback == Fallback::kAuto ? "fallback" : "fanout");
  }
  for (const FanoutShape* shape : {&plan.primary, &plan.after_fallback}) {
    if (std::ssize(shape->at) != plan.lookahead + 1) {
      return Wrong("fanout",
                   "the fan-out has {} entries, but a proposal of {} tokens has {} outcome nodes",
                   shape->at.size(), plan.lookahead, plan.lookahead + 1);
    }
    FT_RETURN_IF_ERROR(
        CheckRange("the cache budget", shape->budget(), 1, bounds.max_cache_budget, "fanout"));
  }
  return {};
}

}  // namespace foretoken
