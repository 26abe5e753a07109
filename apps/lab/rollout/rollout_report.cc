#include "apps/lab/rollout/rollout_report.h"

#include <fmt/core.h>

#include "apps/foretoken/common/terminal.h"

namespace foretoken {
namespace {

double Seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

double PerSecond(std::int64_t tokens, std::int64_t ns) {
  return ns <= 0 ? 0 : static_cast<double>(tokens) / Seconds(ns);
}

std::string ModesText(const RolloutDone& done) {
  std::string text(ModeName(done.mode));
  if (done.tail_mode) text += fmt::format(", the last ones {}", ModeName(*done.tail_mode));
  return text;
}

}  // namespace

std::string RenderRolloutReport(const RolloutDone& done) {
  const RolloutReport& report = done.report;
  const RequestStats& stats = report.stats;
  std::string text = fmt::format("{} samples of {} prompts by {} (mode {})", report.samples,
                                 done.prompts, done.target, ModesText(done));
  if (report.skipped > 0) text += fmt::format(", {} more were there", report.skipped);
  if (report.left > 0) {
    text +=
        fmt::format("\ninterrupted with {} samples left: the same command goes on", report.left);
  }
  if (report.samples == 0) return text + "\n";
  text += fmt::format("\n{} tokens in {}, {:.0f} tokens/s; the last {} samples alone took {}",
                      stats.output_tokens, FormatDuration(static_cast<double>(report.total_ns)),
                      PerSecond(stats.output_tokens, report.total_ns), report.tail_samples,
                      FormatDuration(static_cast<double>(report.tail_ns)));
  text += fmt::format("\n{:.2f} tokens a round, {} of {} proposed tokens accepted",
                      stats.acceptance_length(), stats.accepted, stats.proposed);
  text += fmt::format("; of {} prompt tokens {} were shared\n", stats.prompt_tokens,
                      stats.cached_prompt_tokens);
  return text;
}

Json RolloutReportJson(const RolloutDone& done) {
  const RolloutReport& report = done.report;
  const RequestStats& stats = report.stats;
  Json object = {{"target", done.target},
                 {"weights", done.weights},
                 {"mode", ModeName(done.mode)},
                 {"prompts", done.prompts},
                 {"samples", report.samples},
                 {"skipped", report.skipped},
                 {"left", report.left},
                 {"seconds", Seconds(report.total_ns)},
                 {"output_tokens", stats.output_tokens},
                 {"tokens_per_s", PerSecond(stats.output_tokens, report.total_ns)},
                 {"last_5_percent",
                  {{"samples", report.tail_samples},
                   {"seconds", Seconds(report.tail_ns)},
                   {"output_tokens", report.tail_tokens},
                   {"tokens_per_s", PerSecond(report.tail_tokens, report.tail_ns)}}},
                 {"prompt_tokens", stats.prompt_tokens},
                 {"cached_prompt_tokens", stats.cached_prompt_tokens},
                 {"rounds", stats.rounds},
                 {"proposed", stats.proposed},
                 {"accepted", stats.accepted},
                 {"tokens_per_round", stats.acceptance_length()}};
  if (done.tail_mode) object["tail_mode"] = ModeName(*done.tail_mode);
  if (!done.draft.empty()) object["draft"] = done.draft;
  return object;
}

}  // namespace foretoken
