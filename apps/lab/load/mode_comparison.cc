#include "apps/lab/load/mode_comparison.h"

#include <fmt/core.h>

#include "apps/foretoken/common/bench_stats.h"
#include "apps/foretoken/common/terminal.h"

namespace foretoken {
namespace {

std::vector<double> RatesOf(const ModeLoad& mode, const LoadGoals& goals) {
  std::vector<double> rates;
  for (const auto& round : mode.rounds) {
    rates.push_back(LoadJson({round}, goals)["output_tokens_per_s"].get<double>());
  }
  return rates;
}

Json SpeedupJson(const std::vector<double>& rates, const std::vector<double>& reference) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i] > 0 && reference[i] > 0) ratios.push_back(rates[i] / reference[i]);
  }
  const Interval speedup = BootstrapRatio(ratios);
  return {{"value", speedup.value}, {"low", speedup.low}, {"high", speedup.high}};
}

std::string ShownLatency(const Json& load, const char* latency, const char* quantile) {
  if (!load.contains(latency)) return "-";
  return FormatNumber(load[latency][quantile].get<double>());
}

}  // namespace

Json ModesJson(const std::vector<ModeLoad>& modes, const LoadGoals& goals) {
  Json out = Json::array();
  const std::vector<double> reference = RatesOf(modes.front(), goals);
  for (const ModeLoad& mode : modes) {
    const std::vector<double> rates = RatesOf(mode, goals);
    out.push_back({{"mode", mode.mode},
                   {"load", LoadJson(mode.rounds, goals)},
                   {"output_tokens_per_s",
                    {{"median", Quantile(rates, 0.5)},
                     {"p25", Quantile(rates, 0.25)},
                     {"p75", Quantile(rates, 0.75)}}},
                   {"speedup", SpeedupJson(rates, reference)}});
  }
  return out;
}

std::string RenderModes(const Json& modes) {
  const std::string over = "over " + modes.front()["mode"].get<std::string>() + " [95% CI]";
  TextTable table({"mode", "completed", "tokens/s", "p25..p75", over, "TTFT ms p50", "p99",
                   "TPOT ms p50", "p99"});
  std::string errors;
  for (const Json& mode : modes) {
    const Json& load = mode["load"];
    const Json& rate = mode["output_tokens_per_s"];
    const Json& speedup = mode["speedup"];
    const auto number = [](const Json& value) { return value.get<double>(); };
    const auto name = mode["mode"].get<std::string>();
    table.Add({name,
               fmt::format("{} of {}", load["completed"].get<int>(), load["requests"].get<int>()),
               FormatNumber(number(rate["median"])),
               fmt::format("{}..{}", FormatNumber(number(rate["p25"])),
                           FormatNumber(number(rate["p75"]))),
               fmt::format("{:.2f}x [{:.2f}, {:.2f}]", number(speedup["value"]),
                           number(speedup["low"]), number(speedup["high"])),
               ShownLatency(load, "ttft_ms", "p50"), ShownLatency(load, "ttft_ms", "p99"),
               ShownLatency(load, "tpot_ms", "p50"), ShownLatency(load, "tpot_ms", "p99")});
    for (const auto& [kind, error] : load["errors"].items()) {
      errors += fmt::format("  {}: {} x {}: {}\n", name, error["count"].get<int>(), kind,
                            error["example"].get<std::string>());
    }
  }
  return table.Render(2) + errors;
}

}  // namespace foretoken
