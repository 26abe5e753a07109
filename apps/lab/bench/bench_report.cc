#include "apps/lab/bench/bench_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/common/time_units.h"
#include "apps/lab/bench/lossy_cost.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

constexpr std::size_t kPositions = 4;  // Positions of acceptance that a terminal has room for.

struct Ranked {
  const ModeResult* mode;
  ModeFigures figures;
};

std::vector<Ranked> Rank(const SetResult& set, const BenchContext& context) {
  std::vector<Ranked> ranked;
  for (const ModeResult& mode : set.modes) {
    if (!mode.drafter.empty()) ranked.push_back({&mode, ComputeFigures(set, mode, context)});
  }
  std::ranges::stable_sort(
      ranked, [](const Ranked& a, const Ranked& b) { return a.figures.median > b.figures.median; });
  return ranked;
}

// What a round's drafting took: the target's time in SD; in SSD that of the draft's own device,
// beside the target.
double DraftUs(const ModeResult& mode) {
  if (!mode.mode.during()) return mode.engine.wait.mean() / kNsPerUs;
  return mode.total.rounds == 0
             ? 0
             : static_cast<double>(mode.engine.draft.ns) / kNsPerUs / mode.total.rounds;
}

// The drafters of one set by their speed, fastest first, as a table for a terminal: what each
// brought (tokens a round, acceptance by position) and what it cost. Empty where drafters were not
// compared.
std::string RenderRanking(const SetResult& set, const BenchContext& context) {
  const std::vector<Ranked> ranked = Rank(set, context);
  if (ranked.empty()) return {};
  TextTable table({"drafter", "as", "tokens/s", "speed-up", "tokens/round",
                   "accepted at 1, 2, 3, 4", "draft us a round"});
  for (const auto& [mode, figures] : ranked) {
    std::string accepted;
    const std::vector<double> shares = AcceptancePerPosition(mode->total);
    for (std::size_t i = 0; i < std::min(shares.size(), kPositions); ++i) {
      accepted += fmt::format("{}{:.2f}", i == 0 ? "" : " ", shares[i]);
    }
    // "sd@all" of "sd:NAME@all".
    const std::size_t at = mode->label.rfind("@all");
    table.Add({mode->drafter,
               fmt::format("{}{}", ModeName(mode->mode), at == std::string::npos ? "" : "@all"),
               fmt::format("{:.1f}", figures.median),
               figures.speedup ? fmt::format("{:.2f}x", figures.speedup->value) : "-",
               fmt::format("{:.2f}", mode->total.acceptance_length()), accepted,
               fmt::format("{:.0f}", DraftUs(*mode))});
  }
  return "\n  Drafters, the fastest first\n" + table.Render(2);
}

// The same order, for the set's "ranking": the labels of its modes.
Json RankingJson(const SetResult& set, const BenchContext& context) {
  Json labels = Json::array();
  for (const Ranked& ranked : Rank(set, context)) labels.push_back(ranked.mode->label);
  return labels;
}

const ModeResult* FindReference(const SetResult& set) {
  const auto found = std::find_if(set.modes.begin(), set.modes.end(),
                                  [](const ModeResult& mode) { return mode.label == "ar"; });
  return found == set.modes.end() ? nullptr : &*found;
}

// Groups in which something was decoded after the first token.
std::vector<double> PositiveRates(const ModeResult& mode) {
  std::vector<double> rates;
  std::copy_if(mode.tokens_per_second.begin(), mode.tokens_per_second.end(),
               std::back_inserter(rates), [](double rate) { return rate > 0; });
  return rates;
}

double Share(int part, int whole) {
  return whole == 0 ? -1 : static_cast<double>(part) / static_cast<double>(whole);
}

Json Quantiles(const std::vector<double>& values, double unit) {
  return {{"p50", Quantile(values, 0.5) / unit}, {"p99", Quantile(values, 0.99) / unit}};
}

Json ModeJson(const SetResult& set, const ModeResult& mode, const BenchContext& context) {
  const ModeFigures figures = ComputeFigures(set, mode, context);
  const RequestStats& total = mode.total;
  const auto parts = [&engine = mode.engine](auto figure) -> Json {
    return {{"target", figure(engine.target) / kNsPerUs},
            {"wait", figure(engine.wait) / kNsPerUs},
            {"host", figure(engine.host) / kNsPerUs}};
  };
  Json itl = Quantiles(mode.token_gaps_ns, kNsPerMs);
  itl["histogram"] = LogHistogram(mode.token_gaps_ns, kNsPerMs);
  Json out = {
      {"mode", mode.label},
      {"requests", mode.outputs.size()},
      {"output_tokens", total.output_tokens},
      {"tokens_per_s", {{"median", figures.median}, {"p25", figures.p25}, {"p75", figures.p75}}},
      {"full_batch_tokens_per_s", Quantile(mode.full_batch_rates, 0.5)},
      {"ttft_ms", Quantiles(mode.ttft_ns, kNsPerMs)},
      {"itl_ms", std::move(itl)},
      {"round_gap_ms", Quantiles(mode.burst_gaps_ns, kNsPerMs)},
      {"rounds", total.rounds},
      {"round_us", parts([](const Histogram& times) { return times.mean(); })},
      {"round_us_p50", parts([](const Histogram& times) { return times.Quantile(0.5); })},
      {"choose_us", mode.engine.choose.mean() / kNsPerUs},
      {"passes", mode.engine.passes},
      {"rows", mode.engine.rows},
  };
  if (!mode.drafter.empty()) out["drafter"] = mode.drafter;
  if (figures.speedup) {
    out["speedup"] = {{"value", figures.speedup->value},
                      {"low", figures.speedup->low},
                      {"high", figures.speedup->high}};
  }
  out["identical"] = figures.identical ? Json(*figures.identical) : Json();
  if (figures.first_different_prompt >= 0) {
    out["first_different_prompt"] = figures.first_different_prompt;
  }
  if (figures.read_gb_per_s) out["read_gb_per_s"] = *figures.read_gb_per_s;
  if (mode.written) out["written"] = WrittenTextsJson(*mode.written, total);
  if (mode.planner.has_value()) out["planner"] = PlannerJson(*mode.planner);
  if (mode.mode == Mode::kAr) return out;
  out["acceptance_length"] = total.acceptance_length();
  out["acceptance_rate"] = ShareJson(Share(total.accepted, total.proposed));
  out["acceptance_per_position"] = AcceptancePerPosition(total);
  out["proposed"] = total.proposed;
  out["accepted"] = total.accepted;
  if (mode.mode.during()) {
    out["hit_rate"] = {{"before_k", ShareJson(Share(total.hits_partial, total.lookups_partial))},
                       {"at_k", ShareJson(Share(total.hits_full, total.lookups_full))}};
    out["lookups"] = {{"before_k", total.lookups_partial}, {"at_k", total.lookups_full}};
    out["hits_retrieved"] = total.hits_retrieved;
    out["fallbacks"] = total.fallbacks;
    const DraftPasses& draft = mode.engine.draft;
    out["draft"] = {{"passes", draft.passes},
                    {"rows", draft.rows},
                    {"us", static_cast<double>(draft.ns) / kNsPerUs}};
    out["hit_gap_us"] = {{"p50", mode.engine.hit_gap.Quantile(0.5) / kNsPerUs},
                         {"p99", mode.engine.hit_gap.Quantile(0.99) / kNsPerUs}};
  }
  return out;
}

// Tokens/s of a group from its last first token to its first end: what a batch that is kept full
// does. 0 where that is no time.
double FullBatchRate(const std::vector<Generation>& group) {
  std::int64_t begin = group.front().stats.first_token_ns;
  std::int64_t end = group.front().stats.finished_ns;
  for (const Generation& generation : group) {
    begin = std::max(begin, generation.stats.first_token_ns);
    end = std::min(end, generation.stats.finished_ns);
  }
  int tokens = 0;
  for (const Generation& generation : group) {
    for (const Generation::Burst& burst : generation.bursts) {
      if (burst.time_ns > begin && burst.time_ns <= end) tokens += burst.tokens;
    }
  }
  return end <= begin ? 0 : tokens * 1e9 / static_cast<double>(end - begin);
}

// What mode auto did since its engine began, a line for each mode it used.
std::string PlannerLines(const std::string& label, const PlannerReport& report) {
  std::string text = fmt::format("  {} planned {} times ({:.0f} us each), changed mode {} times\n",
                                 label, report.replans, report.replan_us, report.switches);
  for (const Mode mode : kModes) {
    const ModeReport& of = report.modes[mode];
    if (of.rounds == 0) continue;
    text += fmt::format("    {:<5} {:>7} rounds; {:.0f} tokens/s predicted, {:.0f} measured\n",
                        ModeName(mode), of.rounds, of.predicted, of.tokens_per_second);
  }
  if (!report.reason.empty()) text += fmt::format("    {}\n", report.reason);
  return text;
}

std::string Ratio(const std::optional<Interval>& speedup) {
  if (!speedup) return "-";
  return fmt::format("{:.2f}x [{:.2f}, {:.2f}]", speedup->value, speedup->low, speedup->high);
}

std::string SpeedTable(const SetResult& set, const BenchContext& context) {
  TextTable table({"mode", "tokens/s", "p25..p75", "speed-up [95% CI]", "TTFT ms", "ITL ms p50",
                   "p99", context.scripted ? "SCRIPTED" : "identical"});
  for (const ModeResult& mode : set.modes) {
    const ModeFigures figures = ComputeFigures(set, mode, context);
    const std::string identical = !context.promises_equality() ? "n/a"
                                  : !figures.identical         ? "-"
                                  : *figures.identical         ? "yes"
                                                               : "NO";
    table.Add({mode.label, fmt::format("{:.1f}", figures.median),
               fmt::format("{:.1f}..{:.1f}", figures.p25, figures.p75), Ratio(figures.speedup),
               fmt::format("{:.2f}", Quantile(mode.ttft_ns, 0.5) / kNsPerMs),
               fmt::format("{:.3f}", Quantile(mode.token_gaps_ns, 0.5) / kNsPerMs),
               fmt::format("{:.3f}", Quantile(mode.token_gaps_ns, 0.99) / kNsPerMs), identical});
  }
  return table.Render(2);
}

std::string RoundTable(const SetResult& set) {
  TextTable table({"mode", "rounds", "tokens/round", "accepted", "hit k<K", "hit k=K", "target us",
                   "wait us", "host us"});
  for (const ModeResult& mode : set.modes) {
    const RequestStats& total = mode.total;
    const auto mean = [](const Histogram& histogram) {
      return fmt::format("{:.1f}", histogram.mean() / kNsPerUs);
    };
    table.Add({mode.label, fmt::format("{}", total.rounds),
               fmt::format("{:.2f}", total.acceptance_length()),
               FormatPercent(Share(total.accepted, total.proposed)),
               FormatPercent(Share(total.hits_partial, total.lookups_partial)),
               FormatPercent(Share(total.hits_full, total.lookups_full)), mean(mode.engine.target),
               mean(mode.engine.wait), mean(mode.engine.host)});
  }
  return table.Render(2);
}

}  // namespace

void ModeResult::Add(const std::vector<Generation>& group) {
  std::int64_t first = group.front().stats.first_token_ns;
  std::int64_t last = group.front().stats.finished_ns;
  int decoded = 0;
  for (const Generation& generation : group) {
    const RequestStats& stats = generation.stats;
    first = std::min(first, stats.first_token_ns);
    last = std::max(last, stats.finished_ns);
    decoded += std::max(0, stats.output_tokens - 1);
    ttft_ns.push_back(static_cast<double>(stats.first_token_ns - stats.submitted_ns));
    AppendGaps(generation, &token_gaps_ns, &burst_gaps_ns);
    AddStats(stats, &total);
    const double context = stats.prompt_tokens + stats.output_tokens / 2.0;
    mean_context += (context - mean_context) / static_cast<double>(outputs.size() + 1);
    outputs.push_back(generation.tokens);
    texts.push_back(generation.text);
  }
  full_batch_rates.push_back(FullBatchRate(group));
  tokens_per_second.push_back(
      decoded == 0 || last <= first ? 0 : decoded * 1e9 / static_cast<double>(last - first));
}

ModeFigures ComputeFigures(const SetResult& set, const ModeResult& mode,
                           const BenchContext& context) {
  ModeFigures figures;
  const std::vector<double> rates = PositiveRates(mode);
  figures.median = Quantile(rates, 0.5);
  figures.p25 = Quantile(rates, 0.25);
  figures.p75 = Quantile(rates, 0.75);
  if (mode.mode == Mode::kAr && context.batch == 1) {
    const double bytes = static_cast<double>(context.weight_bytes) +
                         static_cast<double>(context.kv_bytes_per_token) * mode.mean_context;
    figures.read_gb_per_s = bytes * figures.median / 1e9;
  }
  const ModeResult* reference = FindReference(set);
  if (reference == nullptr) return figures;

  std::vector<double> ratios;
  for (std::size_t i = 0; i < mode.tokens_per_second.size(); ++i) {
    const double own = mode.tokens_per_second[i];
    const double other = reference->tokens_per_second[i];
    if (own > 0 && other > 0) ratios.push_back(own / other);
  }
  if (!ratios.empty()) figures.speedup = BootstrapRatio(ratios);
  if (!context.promises_equality() || &mode == reference) return figures;
  for (std::size_t i = 0; i < mode.outputs.size() && figures.first_different_prompt < 0; ++i) {
    if (mode.outputs[i] != reference->outputs[i]) {
      figures.first_different_prompt = Int(i);
    }
  }
  figures.identical = figures.first_different_prompt < 0;
  return figures;
}

Json SetsJson(const std::vector<SetResult>& sets, const BenchContext& context) {
  Json out = Json::array();
  for (const SetResult& set : sets) {
    Json modes = Json::array();
    for (const ModeResult& mode : set.modes) modes.push_back(ModeJson(set, mode, context));
    out.push_back({{"name", set.name},
                   {"chat_template", set.chat},
                   {"prompts", set.modes.empty() ? 0 : set.modes.front().outputs.size()},
                   {"prompts_left_out_as_too_long", set.too_long},
                   {"modes", std::move(modes)}});
    if (Json ranking = RankingJson(set, context); !ranking.empty()) {
      out.back()["ranking"] = std::move(ranking);
    }
  }
  return out;
}

std::vector<std::string> SlowModes(const std::vector<SetResult>& sets,
                                   const BenchContext& context) {
  std::vector<std::string> sentences;
  for (const SetResult& set : sets) {
    for (const ModeResult& mode : set.modes) {
      const std::optional<Interval> speedup = ComputeFigures(set, mode, context).speedup;
      if (!mode.mode.drafts() || !speedup || speedup->value >= 1) continue;
      const std::string accepted =
          mode.total.proposed == 0
              ? "nothing was proposed"
              : fmt::format("{} of what it proposed was accepted",
                            FormatPercent(Share(mode.total.accepted, mode.total.proposed)));
      sentences.push_back(fmt::format("{} ran at {:.2f} times the speed of ar on '{}': {}",
                                      mode.label, speedup->value, set.name, accepted));
    }
  }
  return sentences;
}

Json Definitions() {
  return {
      {"tokens_per_s",
       "emitted tokens after the first, over the time from the first token to the last; with a "
       "batch, of all its requests together; quantiles over prompts (batches)"},
      {"full_batch_tokens_per_s",
       "the same from when all requests of a batch decode to when the first of them ends; median"},
      {"ttft_ms", "from submission to the first token, prefill included"},
      {"itl_ms",
       "one value per token: tokens of a round come together, so the gap between two rounds is "
       "spread evenly over the tokens of the later one"},
      {"round_gap_ms", "time between two rounds that emitted tokens: what a reader waits"},
      {"speedup",
       "geometric mean over prompts of tokens/s over that of ar on the same prompt; 95% "
       "percentile bootstrap interval over prompts"},
      {"acceptance_length", "emitted tokens per round, bonus included"},
      {"acceptance_per_position", "accepted over verified, given that all before were accepted"},
      {"hit_rate",
       "lookups in the speculation cache that found a proposal: before_k after a rejected token, "
       "at_k after all were accepted"},
      {"draft",
       "the speculator's passes on its own device, their rows and the time that they took, "
       "ranking of candidates included"},
      {"round_us", "means of a round's parts: target pass, waiting for a proposal, the rest"},
      {"read_gb_per_s", "weights and KV that ar reads per token, times its tokens/s"},
      {"modes",
       "ar and sd on the target's cores; @all: on the cores of target and draft; sd:NAME: with "
       "that one of --drafters"},
      {"ranking",
       "the modes of --drafters by median tokens/s; what drafting took a round is the target's "
       "time in sd, and the draft's own, beside the target, in ssd"},
  };
}

std::string RenderSet(const SetResult& set, const BenchContext& context) {
  const std::size_t prompts = set.modes.empty() ? 0 : set.modes.front().outputs.size();
  std::string text = fmt::format(
      "{} ({} prompts{}{}){}\n", set.name, prompts, set.chat ? ", chat template" : "",
      set.too_long > 0 ? fmt::format(", {} too long left out", set.too_long) : std::string(),
      context.scripted ? "  SCRIPTED: timings of a script, not of a model"
      : context.lossy  ? "  LOSSY: only ar writes what the model does"
                       : "");
  text += SpeedTable(set, context);
  text.append("\n").append(RoundTable(set));
  for (const ModeResult& mode : set.modes) {
    const std::vector<double> shares = AcceptancePerPosition(mode.total);
    if (shares.empty()) continue;
    text += fmt::format("  {} accepted per position:", mode.label);
    for (const double share : shares) text += fmt::format(" {:.3f}", share);
    text += "\n";
  }
  for (const ModeResult& mode : set.modes) {
    if (mode.planner.has_value()) text += PlannerLines(mode.label, *mode.planner);
    const ModeFigures figures = ComputeFigures(set, mode, context);
    if (figures.read_gb_per_s) {
      text += fmt::format("  {} reads {:.1f} GB/s of weights and KV\n", mode.label,
                          *figures.read_gb_per_s);
    }
    if (figures.first_different_prompt >= 0) {
      text += fmt::format("  {} differs from ar first at prompt {} of this set\n", mode.label,
                          figures.first_different_prompt + 1);
    }
  }
  return text + RenderLossyCost(set) + RenderRanking(set, context);
}

}  // namespace foretoken
