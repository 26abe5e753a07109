#include "cli/plan/plan_simulate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/common/chart_card.h"
#include "cli/common/html_page.h"
#include "cli/common/terminal.h"

namespace foretoken {
namespace {

using nlohmann::json;
using Runs = std::vector<SimulatedRun>;

bool IsSsd(const SimulatedRun& run) { return run.options.mode == Mode::kSsd; }

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

// The autoregressive run of the same batch.
double ArSpeed(const Runs& runs, int batch) {
  for (const SimulatedRun& run : runs) {
    if (run.mode == SimulatedMode::kAr && run.deployment.batch == batch) return run.per_sequence();
  }
  return 0;
}

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

json RunsJson(const Runs& runs) {
  json out = json::array();
  for (const SimulatedRun& run : runs) out.push_back(RunJson(run));
  return out;
}

// A table whose first columns are `head(run)`.
template <typename Head>
std::string RunTable(const Runs& runs, std::vector<std::string> header, const Head& head) {
  for (const char* column :
       {"tokens/s each", "in all", "per device", "speed-up", "K", "B", "tokens a round", "hits",
        "round", "target busy", "draft busy", "on a miss"}) {
    header.emplace_back(column);
  }
  TextTable table(std::move(header));
  const double first = runs.front().per_sequence();
  for (const SimulatedRun& run : runs) {
    const SimulatorResult& result = run.result;
    const double ar = ArSpeed(runs, run.deployment.batch);
    const bool ssd = IsSsd(run);
    std::vector<std::string> row = head(run);
    for (std::string cell :
         {FormatNumber(run.per_sequence()), FormatNumber(result.tokens_per_second()),
          FormatNumber(run.per_device()),
          fmt::format("{:.2f}x", run.per_sequence() / (ar > 0 ? ar : first)),
          run.mode == SimulatedMode::kAr ? "-" : fmt::format("{}", run.options.lookahead),
          ssd ? fmt::format("{}", run.options.primary.budget()) : "-",
          fmt::format("{:.2f}", result.tokens_per_round()),
          ssd ? FormatPercent(result.hit_rate()) : "-", FormatDuration(result.round_us() * 1e3),
          FormatPercent(result.target_utilisation()),
          ssd ? FormatPercent(result.draft_utilisation()) : "-", ssd ? MissText(run) : "-"}) {
      row.push_back(std::move(cell));
    }
    table.Add(std::move(row));
  }
  return table.Render(2);
}

// A mode's colour in every chart.
int ColorOf(SimulatedMode mode) { return static_cast<int>(mode); }

std::string ModeCell(const SimulatedRun& run) { return std::string(SimulatedModeName(run.mode)); }

// One line per mode that occurs.
template <typename Point>
ChartCard CardOf(const Runs& runs, std::string heading, std::string note, std::string x_label,
                 const Point& point) {
  ChartCard card{
      .heading = std::move(heading), .note = std::move(note), .x_label = std::move(x_label)};
  for (const SimulatedMode mode : kSimulatedModes) {
    ChartSeries line{.name = std::string(SimulatedModeName(mode)), .color = ColorOf(mode)};
    for (const SimulatedRun& run : runs) {
      if (run.mode == mode) line.points.push_back(point(run));
    }
    std::ranges::sort(line.points);
    if (!line.points.empty()) card.series.push_back(std::move(line));
  }
  return card;
}

std::vector<ChartCard> Cards(const SimulationReport& report) {
  std::vector<ChartCard> cards;
  if (!report.devices.empty()) {
    cards.push_back(
        CardOf(report.devices,
               fmt::format("Draft devices, batch {}", report.devices.front().deployment.batch),
               "Tokens per second of each sequence; the cache's budget is the best for each point.",
               "draft devices", [](const SimulatedRun& run) {
                 return std::pair<double, double>(run.deployment.draft_devices, run.per_sequence());
               }));
  }
  if (!report.frontier.empty()) {
    const int most = report.frontier.back().deployment.batch;
    cards.push_back(CardOf(report.frontier, "Throughput against latency",
                           fmt::format("Tokens per second of each device, the draft's among them, "
                                       "at batches 1 to {}.",
                                       most),
                           "tokens per second of each sequence", [](const SimulatedRun& run) {
                             return std::pair(run.per_sequence(), run.per_device());
                           }));
    cards.push_back(CardOf(report.frontier, "Batch", "Tokens per second of each sequence.",
                           "sequences of a target", [](const SimulatedRun& run) {
                             return std::pair<double, double>(run.deployment.batch,
                                                              run.per_sequence());
                           }));
    cards.back().logarithmic_x = true;
  }
  if (!report.pool.empty()) {
    cards.push_back(CardOf(
        report.pool,
        fmt::format("Targets that share {} draft device{}",
                    report.pool.front().deployment.draft_devices,
                    report.pool.front().deployment.draft_devices == 1 ? "" : "s"),
        "Tokens per second of each target.", "targets", [](const SimulatedRun& run) {
          return std::pair<double, double>(run.deployment.targets,
                                           run.result.tokens_per_second() / run.deployment.targets);
        }));
  }
  return cards;
}

}  // namespace

std::string SimulationText(const SimulationReport& report) {
  const Deployment& deployment = report.modes.front().deployment;
  std::string text = fmt::format(
      "{}\nBatch {}, {} target{}, {} draft device{} (simulated)\n\n{}", report.setting.source,
      deployment.batch, deployment.targets, deployment.targets == 1 ? "" : "s",
      deployment.draft_devices, deployment.draft_devices == 1 ? "" : "s",
      RunTable(report.modes, {"mode"},
               [](const SimulatedRun& run) { return std::vector<std::string>{ModeCell(run)}; }));
  const auto sweep = [&text](const Runs& runs, const std::string& title, const char* column,
                             const auto& value) {
    if (runs.empty()) return;
    text += fmt::format(
        "\n{}\n{}", title, RunTable(runs, {"mode", column}, [&value](const SimulatedRun& run) {
          return std::vector<std::string>{ModeCell(run), fmt::format("{}", value(run))};
        }));
  };
  sweep(report.devices, "Draft devices that share every cache's branches", "draft devices",
        [](const SimulatedRun& run) { return run.deployment.draft_devices; });
  sweep(report.frontier, "Batch: throughput against latency", "batch",
        [](const SimulatedRun& run) { return run.deployment.batch; });
  sweep(report.pool, "Targets that share the draft devices", "targets",
        [](const SimulatedRun& run) { return run.deployment.targets; });
  return text;
}

json SimulationJson(const SimulationReport& report) {
  return {{"meta",
           {{"numbers", report.setting.source},
            {"simulated", true},
            {"context", report.setting.context},
            {"channel_us", report.setting.channel_us},
            {"seed", report.setting.seed}}},
          {"modes", RunsJson(report.modes)},
          {"devices", RunsJson(report.devices)},
          {"frontier", RunsJson(report.frontier)},
          {"pool", RunsJson(report.pool)}};
}

std::string SimulationHtml(const SimulationReport& report) {
  std::vector<ChartBar> bars;
  double high = 0;
  for (const SimulatedRun& run : report.modes) {
    const double speed = run.per_sequence();
    bars.push_back({ModeCell(run), ColorOf(run.mode), speed, speed, speed});
    high = std::max(high, speed);
  }
  std::string body = "<h1>Foretoken: simulated rounds</h1>\n" +
                     MetaList(SimulationJson(report)["meta"], {"numbers"}) +
                     "<section><h2>Speed of a sequence</h2>\n<p>Tokens per second, batch " +
                     fmt::format("{}", report.modes.front().deployment.batch) +
                     ".</p>\n<div class=\"charts\"><div class=\"card\">" +
                     BarChart("Tokens per second", bars, high) + "</div></div></section>\n";
  const std::vector<ChartCard> cards = Cards(report);
  if (!cards.empty()) {
    body += CardSection("Sweeps",
                        "Every point has the lookahead, cache budget and fallback that are fastest "
                        "there, unless they were given.",
                        cards);
  }
  return HtmlPage("Foretoken simulation", body);
}

}  // namespace foretoken
