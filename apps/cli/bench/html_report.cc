#include "cli/bench/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/common/html_page.h"
#include "cli/common/report_chart.h"

namespace foretoken {
namespace {

using nlohmann::json;

constexpr std::string_view kDash = "–";

/// The value at a path of keys, or nullptr.
const json* Find(const json& object, std::initializer_list<const char*> keys) {
  const json* found = &object;
  for (const char* key : keys) {
    if (!found->is_object()) return nullptr;
    const auto entry = found->find(key);
    if (entry == found->end()) return nullptr;
    found = &*entry;
  }
  return found;
}

std::optional<double> Number(const json& object, std::initializer_list<const char*> keys) {
  const json* found = Find(object, keys);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string Text(const json& object, const char* key) {
  const json* found = Find(object, {key});
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

const json& Array(const json& object, const char* key) {
  static const json empty = json::array();
  const json* found = Find(object, {key});
  return found != nullptr && found->is_array() ? *found : empty;
}

std::string Shown(std::optional<double> value, std::string_view unit = "") {
  return value ? FormatNumber(*value).append(unit) : std::string(kDash);
}

std::string Percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : std::string(kDash);
}

/// The modes for which `has` holds in some set, in order of first appearance.
template <typename Has>
std::vector<std::string> ModesWhere(const json& sets, const Has& has) {
  std::vector<std::string> modes;
  for (const json& set : sets) {
    for (const json& mode : Array(set, "modes")) {
      std::string name = Text(mode, "mode");
      if (has(mode) && std::find(modes.begin(), modes.end(), name) == modes.end()) {
        modes.push_back(std::move(name));
      }
    }
  }
  return modes;
}

/// A mode's place among all modes is its colour everywhere.
int ColorOf(const std::vector<std::string>& modes, const std::string& mode) {
  return static_cast<int>(std::find(modes.begin(), modes.end(), mode) - modes.begin()) %
         kReportColors;
}

std::string Header(const json& report) {
  const json* meta = Find(report, {"meta"});
  std::string html = "<h1>Foretoken bench</h1>\n";
  if (meta == nullptr || !meta->is_object()) return html;
  if (Text(*meta, "acceptance") == "scripted") {
    html +=
        "<p class=\"warn\">Scripted acceptance: these are timings of a prescribed script, not of a "
        "model's real acceptance.</p>\n";
  }
  return html + MetaList(*meta, {"target", "draft", "data", "precision", "target_cores",
                                 "draft_cores", "temperature", "acceptance"});
}

std::string Legend(const std::vector<std::string>& shown, const std::vector<std::string>& modes) {
  std::string html = "<ul class=\"legend\">\n";
  for (const std::string& mode : shown) {
    html += fmt::format("<li><span class=\"key\" style=\"background:var(--s{})\"></span>{}</li>\n",
                        ColorOf(modes, mode), EscapeHtml(mode));
  }
  return html + "</ul>\n";
}

std::string TableRow(const json& mode, int color) {
  std::string html;
  auto out = std::back_inserter(html);
  const auto cell = [&](std::string_view main, std::string_view below = "") {
    fmt::format_to(out, "<td>{}", main);
    if (!below.empty()) fmt::format_to(out, "<small>{}</small>", below);
    html += "</td>";
  };
  const auto interval = [&](const char* key, const char* low, const char* high) {
    const auto from = Number(mode, {key, low});
    const auto to = Number(mode, {key, high});
    return from && to ? FormatNumber(*from) + "–" + FormatNumber(*to) : std::string();
  };
  const auto percentiles = [&](const char* key) {
    const auto p99 = Number(mode, {key, "p99"});
    cell(Shown(Number(mode, {key, "p50"})), p99 ? "p99 " + FormatNumber(*p99) : "");
  };

  fmt::format_to(out,
                 "<tr><th scope=\"row\"><span class=\"key\" "
                 "style=\"background:var(--s{})\"></span>{}</th>",
                 color, EscapeHtml(Text(mode, "mode")));
  cell(Shown(Number(mode, {"tokens_per_s", "median"})), interval("tokens_per_s", "p25", "p75"));
  cell(Shown(Number(mode, {"speedup", "value"}), "×"), interval("speedup", "low", "high"));
  const json* identical = Find(mode, {"identical"});
  if (identical == nullptr || !identical->is_boolean()) {
    cell(kDash);
  } else {
    html += identical->get<bool>() ? "<td class=\"good\">yes</td>" : "<td class=\"bad\">NO</td>";
  }
  cell(Shown(Number(mode, {"acceptance_length"})));
  cell(Percent(Number(mode, {"hit_rate", "before_k"})));
  cell(Percent(Number(mode, {"hit_rate", "at_k"})));
  percentiles("ttft_ms");
  percentiles("itl_ms");
  const auto rounds = Number(mode, {"rounds"});
  cell(rounds ? fmt::format("{:.0f}", *rounds) : std::string(kDash));
  for (const char* part : {"target", "wait", "host"}) cell(Shown(Number(mode, {"round_us", part})));
  return html + "</tr>\n";
}

std::string Table(const json& set, const std::vector<std::string>& modes) {
  std::string html = fmt::format("<div class=\"card\"><h3>{}</h3><div class=\"scroll\"><table>\n",
                                 EscapeHtml(Text(set, "name")));
  html +=
      "<thead><tr><th>mode</th><th>tokens/s</th><th>speed-up</th><th>same<br>tokens</th>"
      "<th>tokens<br>a round</th><th>hit rate<br>k&lt;K</th><th>hit rate<br>k=K</th>"
      "<th>TTFT<br>ms</th><th>ITL<br>ms</th><th>rounds</th><th>target<br>µs</th><th>wait<br>µs</th>"
      "<th>host<br>µs</th></tr></thead>\n<tbody>\n";
  for (const json& mode : Array(set, "modes")) {
    html += TableRow(mode, ColorOf(modes, Text(mode, "mode")));
  }
  return html + "</tbody></table></div></div>\n";
}

/// One chart a set, in cards. `draw(set)` returns an SVG, or nothing where a set has no data; the
/// section is left out where no set has any.
template <typename Draw>
std::string ChartSection(const json& sets, std::string_view heading, std::string_view explanation,
                         std::string_view legend, const Draw& draw) {
  std::string cards;
  for (const json& set : sets) {
    const std::string svg = draw(set);
    if (svg.empty()) continue;
    cards += fmt::format("<div class=\"card\"><h3>{}</h3>\n{}</div>\n",
                         EscapeHtml(Text(set, "name")), svg);
  }
  if (cards.empty()) return cards;
  return fmt::format(
      "<section><h2>{}</h2>\n<p>{}</p>\n{}<div class=\"charts\">\n{}</div></section>\n", heading,
      explanation, legend, cards);
}

std::string SpeedSection(const json& sets, const std::vector<std::string>& modes) {
  double high = 0;
  for (const json& set : sets) {
    for (const json& mode : Array(set, "modes")) {
      for (const char* key : {"median", "p75"}) {
        high = std::max(high, Number(mode, {"tokens_per_s", key}).value_or(0));
      }
    }
  }
  return ChartSection(
      sets, "Tokens per second",
      "Decoding only, median over prompts; the whisker spans the middle half of them. All sets "
      "share one scale.",
      "", [&](const json& set) {
        std::vector<ChartBar> bars;
        for (const json& mode : Array(set, "modes")) {
          const auto median = Number(mode, {"tokens_per_s", "median"});
          if (!median) continue;
          const std::string name = Text(mode, "mode");
          bars.push_back({.name = name,
                          .color = ColorOf(modes, name),
                          .value = *median,
                          .low = Number(mode, {"tokens_per_s", "p25"}).value_or(*median),
                          .high = Number(mode, {"tokens_per_s", "p75"}).value_or(*median)});
        }
        return bars.empty() ? std::string()
                            : BarChart("Tokens per second, " + Text(set, "name"), bars, high);
      });
}

std::string AcceptanceSection(const json& sets, const std::vector<std::string>& modes) {
  const auto has_positions = [](const json& mode) {
    return !Array(mode, "acceptance_per_position").empty();
  };
  return ChartSection(
      sets, "Acceptance per position",
      "Of the proposed tokens at each position, the share that the target accepted where it had "
      "accepted all before.",
      Legend(ModesWhere(sets, has_positions), modes), [&](const json& set) {
        std::vector<ChartSeries> lines;
        std::size_t longest = 0;
        for (const json& mode : Array(set, "modes")) {
          ChartSeries line{.name = Text(mode, "mode")};
          line.color = ColorOf(modes, line.name);
          const json& shares = Array(mode, "acceptance_per_position");
          for (std::size_t i = 0; i < shares.size(); ++i) {
            if (shares[i].is_number()) line.points.emplace_back(i + 1, shares[i].get<double>());
          }
          longest = std::max(longest, shares.size());
          if (!line.points.empty()) lines.push_back(std::move(line));
        }
        if (lines.empty()) return std::string();
        ChartAxis x{.label = "position in the proposal", .low = 0.5, .high = longest + 0.5};
        const std::size_t step = longest / 12 + 1;
        for (std::size_t i = 1; i <= longest; i += step) x.ticks.push_back(static_cast<double>(i));
        const ChartAxis y{.label = "", .low = 0, .high = 1, .ticks = {0, 0.25, 0.5, 0.75, 1}};
        return LineChart("Acceptance per position, " + Text(set, "name"), x, y, lines, true);
      });
}

/// The empirical distribution of a histogram of [[upper edge, count], ...]: the share of samples
/// at or below each edge. Edges that cannot lie on a logarithmic axis are folded into the next.
std::vector<std::pair<double, double>> Distribution(const json& histogram) {
  std::vector<std::pair<double, double>> points;
  double total = 0;
  for (const json& bin : histogram) {
    if (!bin.is_array() || bin.size() != 2 || !bin[0].is_number() || !bin[1].is_number()) continue;
    const double count = bin[1].get<double>();
    if (count <= 0) continue;
    total += count;
    if (bin[0].get<double>() > 0) points.emplace_back(bin[0].get<double>(), total);
  }
  for (auto& point : points) point.second /= total;
  return points;
}

std::string LatencySection(const json& sets, const std::vector<std::string>& modes) {
  const auto points_of = [](const json& mode) {
    static const json empty = json::array();
    const json* histogram = Find(mode, {"itl_ms", "histogram"});
    return Distribution(histogram != nullptr && histogram->is_array() ? *histogram : empty);
  };
  double low = 0;
  double high = 0;
  for (const json& set : sets) {
    for (const json& mode : Array(set, "modes")) {
      for (const auto& [edge, share] : points_of(mode)) {
        low = low == 0 ? edge : std::min(low, edge);
        high = std::max(high, edge);
      }
    }
  }
  ChartAxis x{.label = "milliseconds between two tokens (logarithmic)",
              .low = low * 0.9,
              .high = high * 1.1,
              .logarithmic = true};
  if (low > 0) x.ticks = LogarithmicTicks(x.low, x.high);
  const ChartAxis y{.label = "", .low = 0, .high = 1, .ticks = {0, 0.25, 0.5, 0.75, 1}};
  return ChartSection(
      sets, "Inter-token latency",
      "Share of tokens that came within a time of the one before. Tokens of one round come "
      "together, so a speculative mode has many short gaps and few long ones.",
      Legend(ModesWhere(sets, [&](const json& mode) { return !points_of(mode).empty(); }), modes),
      [&](const json& set) {
        std::vector<ChartSeries> lines;
        for (const json& mode : Array(set, "modes")) {
          ChartSeries line{.name = Text(mode, "mode"), .points = points_of(mode)};
          line.color = ColorOf(modes, line.name);
          if (line.points.empty()) continue;
          line.points.insert(line.points.begin(), {line.points.front().first, 0.0});
          line.points.emplace_back(x.high, 1.0);
          lines.push_back(std::move(line));
        }
        return lines.empty()
                   ? std::string()
                   : LineChart("Inter-token latency, " + Text(set, "name"), x, y, lines, false);
      });
}

}  // namespace

std::string RenderBenchReport(const json& report) {
  const json& sets = Array(report, "sets");
  const std::vector<std::string> modes = ModesWhere(sets, [](const json&) { return true; });
  std::string html = Header(report);
  html += SpeedSection(sets, modes);
  html += "<section><h2>Figures</h2>\n";
  for (const json& set : sets) html += Table(set, modes);
  html +=
      "<p>Small print below a figure: its spread (tokens/s: quartiles; speed-up: confidence "
      "interval). Target, wait and host are the means of a round's parts.</p></section>\n";
  html += AcceptanceSection(sets, modes);
  html += LatencySection(sets, modes);
  return HtmlPage("Foretoken bench", html);
}

}  // namespace foretoken
