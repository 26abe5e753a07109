#include "apps/lab/bench/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "apps/foretoken/common/html_page.h"
#include "apps/foretoken/common/report_chart.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::string_view kDash = "–";

/// The value at a path like "/itl_ms/p50", or null.
const Json& At(const Json& object, const char* path) {
  static const Json kNull;
  const Json* const found = object.Find(path);
  return found == nullptr ? kNull : *found;
}

std::optional<double> Number(const Json& object, const char* path) {
  const Json& found = At(object, path);
  const double value = found.is_number() ? found.get<double>() : NAN;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string TextAt(const Json& object, const char* path) {
  const Json& found = At(object, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

const Json& Array(const Json& object, const char* path) {
  static const Json kEmpty = Json::array();
  const Json& found = At(object, path);
  return found.is_array() ? found : kEmpty;
}

std::string ShownNumber(std::optional<double> value, std::string_view unit = "") {
  return value ? FormatNumber(*value).append(unit) : std::string(kDash);
}

std::string Percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : std::string(kDash);
}

/// Their names, in order of first appearance.
std::vector<std::string> ModesOf(const Json& sets) {
  std::vector<std::string> modes;
  for (const Json& set : sets) {
    for (const Json& mode : Array(set, "/modes")) {
      std::string name = TextAt(mode, "/mode");
      if (std::ranges::find(modes, name) == modes.end()) modes.push_back(std::move(name));
    }
  }
  return modes;
}

/// A mode's place among all modes is its colour everywhere.
int ModeColor(const std::vector<std::string>& modes, const std::string& mode) {
  return static_cast<int>(std::ranges::find(modes, mode) - modes.begin()) % kReportColors;
}

std::string Header(const Json& report) {
  std::string html = "<h1>Foretoken bench</h1>\n";
  if (TextAt(report, "/meta/acceptance") == "scripted") {
    html +=
        "<p class=\"warn\">Scripted acceptance: these are timings of a prescribed script, not of a "
        "model's real acceptance.</p>\n";
  }
  return html + MetaList(At(report, "/meta"),
                         {"target", "draft", "data", "precision", "kv", "target_cores",
                          "draft_cores", "temperature", "acceptance"});
}

std::string TableRow(const Json& mode, int color) {
  std::string html = fmt::format(
      "<tr><th scope=\"row\"><span class=\"key\" "
      "style=\"background:var(--s{})\"></span>{}</th>",
      color, EscapeHtml(TextAt(mode, "/mode")));
  const auto cell = [&](std::string_view main, std::string_view below = "") {
    html += fmt::format("<td>{}", main);
    if (!below.empty()) html += fmt::format("<small>{}</small>", below);
    html += "</td>";
  };
  const auto interval = [&](const char* low, const char* high) {
    const auto from = Number(mode, low);
    const auto to = Number(mode, high);
    return from && to ? FormatNumber(*from) + "–" + FormatNumber(*to) : std::string();
  };
  const auto percentiles = [&](const char* p50, const char* p99) {
    const auto high = Number(mode, p99);
    cell(ShownNumber(Number(mode, p50)), high ? "p99 " + FormatNumber(*high) : "");
  };
  cell(ShownNumber(Number(mode, "/tokens_per_s/median")),
       interval("/tokens_per_s/p25", "/tokens_per_s/p75"));
  cell(ShownNumber(Number(mode, "/speedup/value"), "×"), interval("/speedup/low", "/speedup/high"));
  const Json& identical = At(mode, "/identical");
  html += identical == true    ? "<td class=\"good\">yes</td>"
          : identical == false ? "<td class=\"bad\">NO</td>"
                               : fmt::format("<td>{}</td>", kDash);
  cell(ShownNumber(Number(mode, "/acceptance_length")));
  cell(Percent(Number(mode, "/hit_rate/before_k")));
  cell(Percent(Number(mode, "/hit_rate/at_k")));
  percentiles("/ttft_ms/p50", "/ttft_ms/p99");
  percentiles("/itl_ms/p50", "/itl_ms/p99");
  const auto rounds = Number(mode, "/rounds");
  cell(rounds ? fmt::format("{:.0f}", *rounds) : std::string(kDash));
  for (const char* part : {"/round_us/target", "/round_us/wait", "/round_us/host"}) {
    cell(ShownNumber(Number(mode, part)));
  }
  return html + "</tr>\n";
}

std::string Table(const Json& set, const std::vector<std::string>& modes) {
  std::string html = fmt::format("<div class=\"card\"><h3>{}</h3><div class=\"scroll\"><table>\n",
                                 EscapeHtml(TextAt(set, "/name")));
  html +=
      "<thead><tr><th>mode</th><th>tokens/s</th><th>speed-up</th><th>same<br>tokens</th>"
      "<th>tokens<br>a round</th><th>hit rate<br>k&lt;K</th><th>hit rate<br>k=K</th>"
      "<th>TTFT<br>ms</th><th>ITL<br>ms</th><th>rounds</th><th>target<br>µs</th><th>wait<br>µs</th>"
      "<th>host<br>µs</th></tr></thead>\n<tbody>\n";
  for (const Json& mode : Array(set, "/modes")) {
    html += TableRow(mode, ModeColor(modes, TextAt(mode, "/mode")));
  }
  return html + "</tbody></table></div></div>\n";
}

/// A card like `blank` for every set; `draw(mode, line, card)` adds what it has of a mode to it, of
/// which `line` has name and colour.
template <typename Draw>
std::vector<ChartCard> CardsOf(const Json& sets, const ChartCard& blank, const Draw& draw) {
  const std::vector<std::string> modes = ModesOf(sets);
  std::vector<ChartCard> cards;
  for (const Json& set : sets) {
    cards.push_back(blank);
    cards.back().heading = TextAt(set, "/name");
    for (const Json& mode : Array(set, "/modes")) {
      const std::string name = TextAt(mode, "/mode");
      draw(mode, ChartSeries{.name = name, .color = ModeColor(modes, name)}, &cards.back());
    }
  }
  return cards;
}

std::string SpeedSection(const Json& sets) {
  const auto draw = [](const Json& mode, const ChartSeries& line, ChartCard* card) {
    const auto median = Number(mode, "/tokens_per_s/median");
    if (!median) return;
    card->bars.push_back({.name = line.name,
                          .color = line.color,
                          .value = *median,
                          .low = Number(mode, "/tokens_per_s/p25").value_or(*median),
                          .high = Number(mode, "/tokens_per_s/p75").value_or(*median)});
  };
  return CardSection("Tokens per second",
                     "Decoding only, median over prompts; the whisker spans the middle half of "
                     "them. All sets share one scale.",
                     CardsOf(sets, {}, draw));
}

std::string AcceptanceSection(const Json& sets) {
  const auto draw = [](const Json& mode, ChartSeries line, ChartCard* card) {
    const Json& shares = Array(mode, "/acceptance_per_position");
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (shares[i].is_number()) line.points.emplace_back(i + 1, shares[i].get<double>());
    }
    if (!line.points.empty()) card->series.push_back(std::move(line));
  };
  return CardSection(
      "Acceptance per position",
      "Of the proposed tokens at each position, the share that the target accepted where it had "
      "accepted all before.",
      CardsOf(sets, {.x_label = "position in the proposal", .y_reach = 1}, draw));
}

std::string LatencySection(const Json& sets) {
  double low = 0;
  double high = 0;
  const auto draw = [&](const Json& mode, ChartSeries line, ChartCard* card) {
    line.points = Distribution(Array(mode, "/itl_ms/histogram"));
    if (line.points.empty()) return;
    low = low == 0 ? line.points.front().first : std::min(low, line.points.front().first);
    high = std::max(high, line.points.back().first);
    card->series.push_back(std::move(line));
  };
  std::vector<ChartCard> cards =
      CardsOf(sets,
              {.x_label = "milliseconds between two tokens (logarithmic)",
               .logarithmic_x = true,
               .markers = false},
              draw);
  for (ChartCard& card : cards) {
    for (ChartSeries& line : card.series) {  // All sets share one scale.
      line.points.insert(line.points.begin(), {low, 0.0});
      line.points.emplace_back(high, 1.0);
    }
  }
  return CardSection(
      "Inter-token latency",
      "Share of tokens that came within a time of the one before. Tokens of one round come "
      "together, so a speculative mode has many short gaps and few long ones.",
      cards);
}

}  // namespace

std::string RenderBenchReport(const Json& report) {
  const Json& sets = Array(report, "/sets");
  const std::vector<std::string> modes = ModesOf(sets);
  std::string html = Header(report) + SpeedSection(sets) + "<section><h2>Figures</h2>\n";
  for (const Json& set : sets) html += Table(set, modes);
  html +=
      "<p>Small print below a figure: its spread (tokens/s: quartiles; speed-up: confidence "
      "interval). Target, wait and host are the means of a round's parts.</p></section>\n";
  return HtmlPage("Foretoken bench", html + AcceptanceSection(sets) + LatencySection(sets));
}

}  // namespace foretoken
