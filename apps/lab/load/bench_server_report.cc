#include "apps/lab/load/bench_server_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "apps/foretoken/common/bench_stats.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/common/time_units.h"

namespace foretoken {
namespace {

// The latencies in the order of the table, with their names for readers.
struct Latency {
  const char* key;
  const char* name;
};
constexpr Latency kLatencies[] = {
    {"ttft_ms", "TTFT"},
    {"tpot_ms", "TPOT"},
    {"itl_ms", "ITL"},
    {"e2e_ms", "request"},
};

Json LatencyJson(const std::vector<double>& values_ns) {
  double sum = 0;
  for (const double value : values_ns) sum += value;
  Json latency = {{"mean", sum / static_cast<double>(values_ns.size()) / kNsPerMs},
                  {"histogram", LogHistogram(values_ns, kNsPerMs)}};
  for (const auto& [name, q] : {std::pair("p50", 0.5), {"p90", 0.9}, {"p99", 0.99}}) {
    latency[name] = Quantile(values_ns, q) / kNsPerMs;
  }
  return latency;
}

void AddErrors(const std::vector<LoadRecord>& records, Json* errors) {
  for (const LoadRecord& record : records) {
    if (record.ok()) continue;
    Json& entry = (*errors)[record.error];
    if (entry.is_null()) entry = {{"count", 0}, {"example", record.message}};
    entry["count"] = entry["count"].get<int>() + 1;
  }
}

struct LoadTimes {
  std::int64_t duration_ns = 0;  // From the first start to the last end.
  int peak = 0;                  // The most requests that were under way at once.
};

LoadTimes TimesOf(const std::vector<LoadRecord>& records) {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const LoadRecord& record : records) {
    changes.emplace_back(record.start_ns, 1);
    changes.emplace_back(record.end_ns, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0;
  int peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, now += change);
  return {changes.back().first - changes.front().first, peak};
}

// Sums over the completed requests.
struct Totals {
  int completed = 0;
  int good = 0;
  std::int64_t output = 0;
  std::int64_t input = 0;
  std::int64_t drafted = 0;
  std::int64_t draft_accepted = 0;
  bool all_counted = true;
  std::map<std::string, std::vector<double>> latencies_ns;

  void Add(const LoadRecord& record, const LoadGoals& goals) {
    ++completed;
    if (goals.MetBy(record)) ++good;
    output += record.tokens();
    input += record.prompt_tokens.value_or(0);
    drafted += record.drafted.value_or(0);
    draft_accepted += record.draft_accepted.value_or(0);
    all_counted = all_counted && record.counted_tokens.has_value();
    latencies_ns["ttft_ms"].push_back(record.ttft_ns());
    if (const auto tpot = record.tpot_ns()) latencies_ns["tpot_ms"].push_back(*tpot);
    latencies_ns["e2e_ms"].push_back(static_cast<double>(record.end_ns - record.start_ns));
    for (std::size_t i = 1; i < record.chunk_ns.size(); ++i) {
      latencies_ns["itl_ms"].push_back(
          static_cast<double>(record.chunk_ns[i] - record.chunk_ns[i - 1]));
    }
  }
};

std::string LatencyTable(const Json& load) {
  TextTable table({"ms", "mean", "p50", "p90", "p99"});
  for (const Latency& latency : kLatencies) {
    if (!load.contains(latency.key)) continue;
    const Json& values = load[latency.key];
    std::vector<std::string> row = {latency.name};
    for (const char* key : {"mean", "p50", "p90", "p99"}) {
      row.push_back(FormatNumber(values[key].get<double>()));
    }
    table.Add(std::move(row));
  }
  return table.Render(2);
}

// Name and value of every figure that is not a distribution.
std::vector<std::pair<std::string, std::string>> LoadFigures(const Json& load) {
  const auto number = [&](const char* key) { return load[key].get<double>(); };
  const auto count = [&](const char* key) { return fmt::format("{:.0f}", number(key)); };
  const auto rate = [&](const char* key) { return FormatNumber(number(key)); };
  const auto share = [&](const char* key) { return FormatPercent(number(key)); };
  std::vector<std::pair<std::string, std::string>> figures = {
      {"completed", fmt::format("{} of {}", count("completed"), count("requests"))},
      {"duration", FormatDuration(number("duration_s") * 1e9)},
      {"requests/s", rate("requests_per_s")},
      {"output tokens/s", rate("output_tokens_per_s")},
      {"output tokens",
       count("output_tokens") + (load["tokens_counted_by"] == "usage" ? "" : " (chunks)")},
      {"most in flight", count("peak_in_flight")},
  };
  if (load.contains("total_tokens_per_s")) {
    figures.emplace_back("tokens/s with prompts", rate("total_tokens_per_s"));
  }
  if (load.contains("goodput_per_s")) {
    figures.emplace_back("goodput, requests/s",
                         fmt::format("{} ({})", rate("goodput_per_s"), share("good_share")));
  }
  if (load.contains("acceptance_rate")) {
    figures.emplace_back("draft tokens accepted", share("acceptance_rate"));
  }
  return figures;
}

}  // namespace

bool LoadGoals::MetBy(const LoadRecord& record) const {
  if (!record.ok()) return false;
  if (ttft_ms && record.ttft_ns() > *ttft_ms * kNsPerMs) return false;
  return !tpot_ms || record.tpot_ns().value_or(0) <= *tpot_ms * kNsPerMs;
}

Json LoadJson(const std::vector<std::vector<LoadRecord>>& rounds, const LoadGoals& goals) {
  Totals totals;
  LoadTimes times;
  Json errors = Json::object();
  std::size_t requests = 0;
  for (const std::vector<LoadRecord>& records : rounds) {
    for (const LoadRecord& record : records) {
      if (record.ok()) totals.Add(record, goals);
    }
    const LoadTimes of_round = TimesOf(records);
    times.duration_ns += of_round.duration_ns;
    times.peak = std::max(times.peak, of_round.peak);
    AddErrors(records, &errors);
    requests += records.size();
  }
  const double seconds = static_cast<double>(times.duration_ns) / 1e9;
  const auto per_second = [&](auto count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
  };
  Json load = {
      {"duration_s", seconds},
      {"peak_in_flight", times.peak},
      {"requests", requests},
      {"completed", totals.completed},
      {"errors", std::move(errors)},
      {"output_tokens", totals.output},
      {"tokens_counted_by", totals.all_counted ? "usage" : "chunks"},
      {"requests_per_s", per_second(totals.completed)},
      {"output_tokens_per_s", per_second(totals.output)},
  };
  if (totals.input > 0) {
    load["input_tokens"] = totals.input;
    load["total_tokens_per_s"] = per_second(totals.input + totals.output);
  }
  if (goals.any()) {
    load["goodput_per_s"] = per_second(totals.good);
    load["good_share"] = totals.good / static_cast<double>(requests);
  }
  if (totals.drafted > 0) {
    load["draft_tokens"] = totals.drafted;
    load["draft_accepted"] = totals.draft_accepted;
    load["acceptance_rate"] =
        static_cast<double>(totals.draft_accepted) / static_cast<double>(totals.drafted);
  }
  for (const auto& [key, values] : totals.latencies_ns) load[key] = LatencyJson(values);
  return load;
}

Json LoadDefinitions() {
  return {
      {"ttft_ms",
       "from a request's sending (with --rate: from its arrival, also where it then waited for a "
       "connection) to its first text"},
      {"tpot_ms", "time from a request's first text to its last, over its tokens but one"},
      {"itl_ms",
       "time between two pieces of text of one reply; a speculative server sends several tokens "
       "in one piece"},
      {"e2e_ms", "from a request's sending (arrival) to the end of its reply"},
      {"output_tokens", "as the server's usage counts them, else one for every piece of text"},
      {"requests_per_s", "completed requests over the time from the first start to the last end"},
      {"goodput_per_s", "the same, of requests that kept all goals (--slo-ttft-ms, --slo-tpot-ms)"},
      {"errors",
       "http NNN: refused; connection: not reached; timeout: silent for too long; cut off: ended "
       "early; server error: reported in the stream; no text: an empty reply"},
  };
}

std::string RenderLoad(const Json& load) {
  std::string text;
  std::size_t width = 0;
  const auto figures = LoadFigures(load);
  for (const auto& [name, value] : figures) width = std::max(width, DisplayWidth(name));
  for (const auto& [name, value] : figures) {
    text += fmt::format("  {:<{}}  {}\n", name, width, value);
  }
  if (load.contains("ttft_ms")) text.append("\n").append(LatencyTable(load));
  for (const auto& [kind, error] : load["errors"].items()) {
    text += fmt::format("  {} x {}: {}\n", error["count"].get<int>(), kind,
                        error["example"].get<std::string>());
  }
  return text;
}

}  // namespace foretoken
