#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/engine/engine.h"
#include "foretoken/request.h"

namespace foretoken {

/// Refuses a value outside [low, high]. `what` begins the sentence; `field` is the error's.
Status CheckRange(std::string_view what, std::int64_t value, std::int64_t low, std::int64_t high,
                  std::string_view field = {});

/// Whether the mode proposes PlanOptions::lookahead_window columns and `lookahead_guesses`
/// n-grams.
bool HasWindow(Mode mode);

/// What engines do where nothing is asked of them, with a K in [1, kMaxProposal].
SpeculationPlan DefaultPlan(int lookahead);

/// The plan that `options` make of `base`, which is complete; so is the result. Errors name the
/// field at fault.
Result<SpeculationPlan> ApplyOptions(const PlanOptions& options, const SpeculationPlan& base,
                                     FieldSpelling spell = PlainSpelling);

/// What mode auto may choose from beside `plan`, which ApplyOptions made of the options; nothing
/// where a preset says it all.
std::optional<PlannerSettings> PlannerSettingsFor(const PlanOptions& options,
                                                  const SpeculationPlan& plan);

/// The plan with its empty fan-out shapes filled in.
SpeculationPlan CompletePlan(SpeculationPlan plan);

/// How much an engine holds, and how much its requests' plans may ask for.
struct EngineSizes {
  int lookahead = 0;
  int nodes = 0;         ///< Proposal tokens of a round on all paths.
  int cache_budget = 0;  ///< Branches of a speculation cache.
  int context = 0;       ///< Tokens of a sequence.
  std::int64_t kv_tokens = 0;
};

/// The sizes that `config` gives, and those that follow for what it leaves out.
EngineSizes SizesFor(const EngineConfig& config, const ModelConfig& target);

/// In one sentence why no engine can be made with `config`, whose sizes these are, if so.
Status ValidateConfig(const EngineConfig& config, const EngineSizes& sizes);

/// What the requests of an engine, and their plans, must fit.
struct RequestBounds {
  int vocabulary = 0;
  int max_context = 0;
  bool has_tokenizer = false;
  int adapters = 0;  ///< How many adapters the target was loaded with.
  std::vector<Mode> offered;
  int max_lookahead = 0;
  int max_nodes = 0;
  int max_cache_budget = 0;
  bool knows_row_times = false;  ///< The target's passes were measured.
};

/// In one sentence why a request can never run, whatever its plan, if so.
Status CheckRequest(const Request& request, const RequestBounds& bounds);

/// The plan with a tree that was given no size cut to what an engine of these bounds has room for.
SpeculationPlan FitTree(SpeculationPlan plan, const RequestBounds& bounds);

/// In one sentence why an engine of these bounds cannot follow the plan, which is complete.
Status CheckPlan(const SpeculationPlan& plan, const RequestBounds& bounds);

}  // namespace foretoken
