#include "apps/foretoken/common/generation.h"

#include <fmt/core.h>

#include "apps/foretoken/common/terminal.h"

namespace foretoken {

std::string_view DescribeFinish(FinishReason reason) {
  constexpr std::string_view kDescriptions[] = {
      "ended by the model",
      "ended by a stop token",
      "ended by a stop string",
      "ended at --max-tokens",
      "ended by the grammar",
      "ended because the grammar is too ambiguous",
      "ended with the context full",
      "ended as the model's numbers are not finite",
      "interrupted",
  };
  return kDescriptions[static_cast<std::size_t>(reason)];
}

std::string SpeedText(const RequestStats& stats) {
  std::string text =
      fmt::format("{} token{}", stats.output_tokens, stats.output_tokens == 1 ? "" : "s");
  const double speed = stats.decode_tokens_per_second();
  if (speed > 0) text += fmt::format(", {:.0f} tokens/s", speed);
  return text;
}

std::string SpeculationText(Mode mode, const RequestStats& stats) {
  std::string text;
  if (mode != Mode::kAr && stats.rounds > 0)
    text += fmt::format(", {:.2f} tokens/round", stats.acceptance_length());
  const double hits = HitRate(stats);
  if (hits >= 0) text += fmt::format(", {} cache hits", FormatPercent(hits));
  if (stats.lossy_rule != Lossy::kNone) {
    text += fmt::format(", LOSSY ({}): {} tokens are not what the model chose",
                        LossyName(stats.lossy_rule), stats.lossy);
  }
  return text;
}

DraftingCosts CostsOf(const RequestStats& stats, const EngineStats& engine) {
  return {.rounds = stats.rounds,
          .tokens = stats.output_tokens,
          .proposed = stats.proposed,
          .accepted = stats.accepted,
          .target = static_cast<double>(engine.target.sum()),
          .wait = static_cast<double>(engine.wait.sum()),
          .host = static_cast<double>(engine.host.sum())};
}

std::string DraftVerdict(Mode mode, const DraftingCosts& costs) {
  constexpr std::int64_t kTelling = 16;  // Rounds.
  if (!mode.drafts() || mode.planned() || costs.rounds < kTelling || costs.proposed == 0) return {};
  const double per_round = static_cast<double>(costs.tokens) / costs.rounds;
  const double without_waiting = costs.target + costs.host;
  const double speed = per_round * without_waiting / (without_waiting + costs.wait);
  if (!(speed < 1)) return {};
  return fmt::format(
      "mode {} does not pay here: {} of what it proposed was accepted, and --mode ar would be "
      "{:.2f} times as fast or more",
      ModeName(mode), FormatPercent(static_cast<double>(costs.accepted) / costs.proposed),
      1 / speed);
}

double HitRate(const RequestStats& stats) {
  const int lookups = stats.lookups_partial + stats.lookups_full;
  return lookups == 0 ? -1 : static_cast<double>(stats.hits_partial + stats.hits_full) / lookups;
}

Json ShareJson(double share) { return share < 0 ? Json() : Json(share); }

Json StatsJson(const RequestStats& stats) {
  const auto milliseconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  Json figures = {
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
      {"hit_rate", ShareJson(HitRate(stats))},
      {"hits_retrieved", stats.hits_retrieved},
      {"fallbacks", stats.fallbacks},
      {"preemptions", stats.preemptions},
  };
  if (stats.lossy_rule == Lossy::kNone) return figures;
  figures["lossy"] = LossyName(stats.lossy_rule);
  figures["lossy_tokens"] = stats.lossy;
  return figures;
}

Json PlannerJson(const PlannerReport& report) {
  Json modes = Json::object();
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
          {"switches", report.switches},
          {"reason", report.reason}};
}

}  // namespace foretoken
