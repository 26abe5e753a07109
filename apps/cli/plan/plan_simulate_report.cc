#include "cli/plan/plan_simulate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/common/html_page.h"
#include "cli/common/report_chart.h"
#include "cli/common/terminal.h"

namespace foretoken {
namespace {

using nlohmann::json;

constexpr const char* kSpeed = "tokens_per_s_per_sequence";

bool IsSsd(const SimulatedRun& run) { return run.options.mode.during(); }

// "jit", "jit, batch waits", "none" ...
std::string MissText(const SimulatedRun& run) {
  std::string text(FallbackName(run.options.fallback));
  if (run.options.fallback != Fallback::kJit || run.options.batch == 1) return text;
  switch (run.options.jit_wait) {
    case JitWait::kBatch:
      return text + ", batch waits";
    case JitWait::kSequence:
      return text + ", sequence waits";
    case JitWait::kNobody:
      return text + ", nobody waits";
  }
  return text;
}

// The speed of the autoregressive run of the same batch, or of the first run.
double Baseline(const json& runs, const json& run) {
  const std::string_view ar = SimulatedModeName(SimulatedMode::kAr);
  for (const json& other : runs) {
    if (other["mode"] == ar && other["batch"] == run["batch"]) return other[kSpeed];
  }
  return runs[0][kSpeed];
}

// The cells of a run after those that name it.
std::vector<std::string> Figures(const json& runs, const json& run) {
  const bool ssd = run.contains("hit_rate");
  const auto number = [&run](const char* key) { return run[key].get<double>(); };
  int budget = 0;
  for (const int fanout : run.value("fanout", json::array())) budget += fanout;
  return {FormatNumber(number(kSpeed)),
          FormatNumber(number("tokens_per_s")),
          FormatNumber(number("tokens_per_s_per_device")),
          fmt::format("{:.2f}x", number(kSpeed) / Baseline(runs, run)),
          run.contains("lookahead") ? run["lookahead"].dump() : "-",
          ssd ? fmt::format("{}", budget) : "-",
          fmt::format("{:.2f}", number("tokens_per_round")),
          ssd ? FormatPercent(run["hit_rate"]["all"]) : "-",
          FormatDuration(number("round_ms") * 1e6),
          FormatPercent(number("target_busy")),
          ssd ? FormatPercent(number("draft_busy")) : "-",
          ssd ? run["fallback"].get<std::string>() : "-"};
}

// `swept`: the key of a second column, if any.
std::string RunTable(const json& runs, const std::string& swept) {
  std::vector<std::string> header = {"mode"};
  if (!swept.empty()) header.push_back(swept == "draft_devices" ? "draft devices" : swept);
  for (const char* column :
       {"tokens/s each", "in all", "per device", "speed-up", "K", "B", "tokens a round", "hits",
        "round", "target busy", "draft busy", "on a miss"}) {
    header.emplace_back(column);
  }
  TextTable table(std::move(header));
  for (const json& run : runs) {
    std::vector<std::string> row = {run["mode"]};
    if (!swept.empty()) row.push_back(run[swept].dump());
    for (std::string& cell : Figures(runs, run)) row.push_back(std::move(cell));
    table.Add(std::move(row));
  }
  return table.Render(2);
}

// A mode's colour in every chart.
int ColorOf(const json& run) {
  const auto named = [&run](SimulatedMode mode) { return run["mode"] == SimulatedModeName(mode); };
  return static_cast<int>(std::ranges::find_if(kSimulatedModes, named) - kSimulatedModes);
}

// Draws one line per mode, each through the points of its runs.
template <typename Point>
ChartCard CardOf(const json& runs, ChartCard card, const Point& point) {
  for (const json& run : runs) {  // Those of a mode lie together.
    if (card.series.empty() || card.series.back().name != run["mode"]) {
      card.series.push_back({.name = run["mode"], .color = ColorOf(run)});
    }
    card.series.back().points.push_back(point(run));
  }
  for (ChartSeries& line : card.series) std::ranges::sort(line.points);
  return card;
}

// Against the value of a key.
ChartCard SpeedCard(const json& runs, ChartCard card, const char* key) {
  return CardOf(runs, std::move(card), [key](const json& run) {
    return std::pair(run[key].get<double>(), run[kSpeed].get<double>());
  });
}

// "1 target", "2 targets".
std::string Count(int count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::vector<ChartCard> Sweeps(const json& report) {
  std::vector<ChartCard> cards;
  if (const json& runs = report["devices"]; !runs.empty()) {
    cards.push_back(SpeedCard(runs,
                              {.heading = "Draft devices, batch " + runs[0]["batch"].dump(),
                               .note = "Tokens per second of each sequence; the cache's budget is "
                                       "the best for each point.",
                               .x_label = "draft devices"},
                              "draft_devices"));
  }
  if (const json& runs = report["frontier"]; !runs.empty()) {
    cards.push_back(CardOf(
        runs,
        {.heading = "Throughput against latency",
         .note = fmt::format("Tokens per second of each device, the draft's among them, at batches "
                             "1 to {}.",
                             runs.back()["batch"].get<int>()),
         .x_label = "tokens per second of each sequence"},
        [](const json& run) {
          return std::pair<double, double>(run[kSpeed], run["tokens_per_s_per_device"]);
        }));
    cards.push_back(SpeedCard(runs,
                              {.heading = "Batch",
                               .note = "Tokens per second of each sequence.",
                               .x_label = "sequences of a target",
                               .logarithmic_x = true},
                              "batch"));
  }
  if (const json& runs = report["pool"]; !runs.empty()) {
    cards.push_back(
        CardOf(runs,
               {.heading = "Targets that share " + Count(runs[0]["draft_devices"], "draft device"),
                .note = "Tokens per second of each target.",
                .x_label = "targets"},
               [](const json& run) {
                 const double targets = run["targets"];
                 return std::pair(targets, run["tokens_per_s"].get<double>() / targets);
               }));
  }
  return cards;
}

}  // namespace

json RunJson(const SimulatedRun& run) {
  const SimulatorResult& result = run.result;
  json out = {{"mode", SimulatedModeName(run.mode)},
              {"targets", run.deployment.targets},
              {"batch", run.deployment.batch},
              {"devices", run.devices},
              {"tokens_per_s", result.tokens_per_second()},
              {"tokens_per_s_per_sequence", run.per_sequence()},
              {"tokens_per_s_per_device", run.per_device()},
              {"tokens_per_round", result.tokens_per_round()},
              {"round_ms", result.round_us() / 1e3},
              {"target_busy", result.target_utilisation()}};
  if (run.mode != SimulatedMode::kAr) out["lookahead"] = run.options.lookahead;
  if (!IsSsd(run)) return out;
  out["draft_devices"] = result.draft_devices;
  out["fanout"] = run.options.primary.at;
  out["fallback"] = MissText(run);
  out["hit_rate"] = {{"all", result.hit_rate()},
                     {"before_k", result.hit_rate_before_end()},
                     {"at_k", result.hit_rate_at_end()}};
  out["proposal_length"] = result.proposal_length();
  out["draft_busy"] = result.draft_utilisation();
  return out;
}

std::string SimulationText(const json& report) {
  const json& run = report["modes"].back();
  std::string text = fmt::format(
      "{}\nBatch {}, {}, {} (simulated)\n\n{}", report["meta"]["numbers"].get<std::string>(),
      run["batch"].get<int>(), Count(run["targets"], "target"),
      Count(run["draft_devices"], "draft device"), RunTable(report["modes"], ""));
  const auto sweep = [&](const char* list, const char* title, const char* key) {
    if (report[list].empty()) return;
    text += fmt::format("\n{}\n{}", title, RunTable(report[list], key));
  };
  sweep("devices", "Draft devices that share every cache's branches", "draft_devices");
  sweep("frontier", "Batch: throughput against latency", "batch");
  sweep("pool", "Targets that share the draft devices", "targets");
  return text;
}

std::string SimulationHtml(const json& report) {
  ChartCard speeds{.heading = "Batch " + report["modes"][0]["batch"].dump()};
  for (const json& run : report["modes"]) {
    const double speed = run[kSpeed];
    speeds.bars.push_back({run["mode"], ColorOf(run), speed, speed, speed});
  }
  return HtmlPage("Foretoken simulation",
                  "<h1>Foretoken: simulated rounds</h1>\n" + MetaList(report["meta"], {"numbers"}) +
                      CardSection("Speed of a sequence", "Tokens per second.", {speeds}) +
                      CardSection("Sweeps",
                                  "Every point has the lookahead, cache budget and fallback that "
                                  "are fastest there, unless they were given.",
                                  Sweeps(report)));
}

}  // namespace foretoken
