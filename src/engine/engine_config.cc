#include "engine/engine_config.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/plan_rules.h"

namespace foretoken {

EngineConfig CompleteOptions(EngineConfig options, const ModelConfig& target) {
  options.plan = CompletePlan(options.plan);
  if (options.max_lookahead == 0) options.max_lookahead = options.plan.lookahead;
  if (options.max_nodes == 0) {
    options.max_nodes =
        std::max({options.plan.nodes(), options.plan.RetrievedNodes(), options.max_lookahead});
    if (options.plan.fallback == Fallback::kRetrieval) {  // Also of requests with mode ssd.
      options.max_nodes = std::max(options.max_nodes, kMaxAutoSpeculationLength - 1);
    }
  }
  if (options.max_cache_budget == 0) {
    // A shape counts the nodes of a chain; in a tree there are as many more branches as nodes.
    const int budget =
        std::max(options.plan.primary.budget(), options.plan.after_fallback.budget());
    const int nodes = options.plan.nodes() + 1;
    options.max_cache_budget =
        std::min(budget * std::max(1, nodes / (options.plan.lookahead + 1)), kMaxCacheBudget);
  }
  if (options.max_context == 0) options.max_context = target.max_positions;
  options.max_context = std::min(options.max_context, target.max_positions);
  if (options.kv_tokens == 0) {
    options.kv_tokens = BlocksFor(options.max_context + 1) * kBlockSize * options.max_batch;
  }
  return options;
}

Status ValidateOptions(const EngineConfig& options) {
  FT_RETURN_IF_ERROR(CheckRange("the largest lookahead", options.max_lookahead, 1, kMaxProposal));
  FT_RETURN_IF_ERROR(CheckRange("the largest proposal", options.max_nodes, 1, kMaxProposal));
  FT_RETURN_IF_ERROR(
      CheckRange("the largest cache budget", options.max_cache_budget, 1, kMaxCacheBudget));
  FT_RETURN_IF_ERROR(CheckRange("the batch size", options.max_batch, 1, 256));
  FT_RETURN_IF_ERROR(CheckRange("the prefill chunk", options.prefill_chunk, 1, 8192));
  FT_RETURN_IF_ERROR(CheckRange("the context", options.max_context, 2, 1 << 24));
  if (BlocksFor(options.kv_tokens) < BlocksFor(options.max_context)) {
    return InvalidInput(fmt::format("{} KV slots cannot hold one sequence of {} tokens",
                                    options.kv_tokens, options.max_context));
  }
  return {};
}

}  // namespace foretoken
