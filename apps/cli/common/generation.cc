#include "cli/common/generation.h"

#include <nlohmann/json.hpp>

namespace foretoken {

std::string_view DescribeFinish(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfSequence:
      return "ended by the model";
    case FinishReason::kStopToken:
      return "ended by a stop token";
    case FinishReason::kStopString:
      return "ended by a stop string";
    case FinishReason::kMaxTokens:
      return "ended at --max-tokens";
    case FinishReason::kGrammarEnd:
      return "ended by the grammar";
    case FinishReason::kGrammarStuck:
      return "ended because the grammar is too ambiguous";
    case FinishReason::kContextFull:
      return "ended with the context full";
    case FinishReason::kCancelled:
      return "interrupted";
  }
  return "";
}

double HitRate(const RequestStats& stats) {
  const int lookups = stats.lookups_partial + stats.lookups_full;
  return lookups == 0 ? -1 : static_cast<double>(stats.hits_partial + stats.hits_full) / lookups;
}

nlohmann::json StatsJson(const RequestStats& stats) {
  const auto milliseconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  nlohmann::json json = {
      {"prompt_tokens", stats.prompt_tokens},
      {"cached_prompt_tokens", stats.cached_prompt_tokens},
      {"output_tokens", stats.output_tokens},
      {"time_to_first_token_ms", milliseconds(stats.first_token_ns - stats.submitted_ns)},
      {"decode_ms", milliseconds(stats.finished_ns - stats.first_token_ns)},
      {"tokens_per_s", stats.decode_tokens_per_second()},
      {"rounds", stats.rounds},
      {"proposed", stats.proposed},
      {"accepted", stats.accepted},
      {"acceptance_length", stats.acceptance_length()},
      {"lookups", {{"before_k", stats.lookups_partial}, {"at_k", stats.lookups_full}}},
      {"hits", {{"before_k", stats.hits_partial}, {"at_k", stats.hits_full}}},
      {"hits_retrieved", stats.hits_retrieved},
      {"fallbacks", stats.fallbacks},
      {"preemptions", stats.preemptions},
  };
  const double hits = HitRate(stats);
  json["hit_rate"] = hits < 0 ? nlohmann::json() : nlohmann::json(hits);
  return json;
}

nlohmann::json PlannerJson(const PlannerReport& report) {
  nlohmann::json modes = nlohmann::json::object();
  for (const Mode mode : kModes) {
    const ModeReport& of = report.modes[mode];
    if (of.rounds == 0) continue;
    modes[std::string(ModeName(mode))] = {{"rounds", of.rounds},
                                          {"measured_tokens_per_s", of.tokens_per_second},
                                          {"predicted_tokens_per_s", of.predicted},
                                          {"correction", of.correction}};
  }
  return {{"modes", std::move(modes)},
          {"replans", report.replans},
          {"replan_us", report.replan_us},
          {"switches", report.switches}};
}

}  // namespace foretoken
