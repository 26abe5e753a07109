#include "apps/lab/bench/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "apps/foretoken/common/report_chart.h"
#include "json/json.h"

namespace foretoken {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// The first tag of `html` that does not match the one it closes, or "" where all do.
std::string FirstUnbalancedTag(const std::string& html) {
  const std::set<std::string> void_tags = {"meta", "br"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return html.substr(at, 20);
    if (html[at + 1] == '!') continue;
    const bool closes = html[at + 1] == '/';
    std::string name;
    for (std::size_t i = at + (closes ? 2 : 1); std::isalnum(html[i]) != 0; ++i) name += html[i];
    if (closes) {
      if (open.empty() || open.back() != name) return "/" + name;
      open.pop_back();
    } else if (html[end - 1] != '/' && !void_tags.contains(name)) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : open.back();
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

Json SampleReport() {
  return Json::Parse(R"json({
    "meta": {"target": "demo-target", "draft": "demo-draft", "precision": "bf16",
             "target_cores": [0], "draft_cores": [1], "temperature": 0.7, "acceptance": "real",
             "prompts_per_set": 64},
    "sets": [
      {"name": "stories", "modes": [
        {"mode": "ar", "tokens_per_s": {"median": 1800, "p25": 1750, "p75": 1850},
         "speedup": {"value": 1, "low": 1, "high": 1}, "acceptance_length": 1,
         "acceptance_per_position": [], "ttft_ms": {"p50": 3.2, "p99": 4.8},
         "itl_ms": {"p50": 0.55, "p99": 0.81, "histogram": [[0.5, 20], [0.6, 900], [0.9, 80]]},
         "rounds": 1000, "round_us": {"target": 540, "wait": 0, "host": 6}},
        {"mode": "ssd", "tokens_per_s": {"median": 3456, "p25": 3200, "p75": 3600},
         "speedup": {"value": 1.92, "low": 1.85, "high": 1.99}, "acceptance_length": 3.4,
         "acceptance_per_position": [0.71, 0.69, 0.7], "hit_rate": {"before_k": 0.61, "at_k": 0.78},
         "itl_ms": {"p50": 0.02, "p99": 0.9, "histogram": [[0.02, 700], [0.9, 300]]},
         "rounds": 300, "round_us": {"target": 610, "wait": 12, "host": 9}, "identical": true}]},
      {"name": "code <b>&\"x\"", "modes": [
        {"mode": "sd", "tokens_per_s": {"median": 2000}, "identical": false}]}
    ]})json");
}

TEST(HtmlReport, IsWellFormedAndSelfContained) {
  const std::string html = RenderBenchReport(SampleReport());
  EXPECT_EQ(FirstUnbalancedTag(html), "");
  for (const char* fetched : {"http:", "https:", "src=", "@import", "url(", "<script", "<link"}) {
    EXPECT_THAT(html, Not(HasSubstr(fetched)));
  }
}

TEST(HtmlReport, EscapesText) {
  const std::string html = RenderBenchReport(SampleReport());
  EXPECT_THAT(html, HasSubstr("<h3>code &lt;b&gt;&amp;&quot;x&quot;</h3>"));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
}

TEST(HtmlReport, ShowsEveryModeAndItsFigures) {
  const std::string html = RenderBenchReport(SampleReport());
  for (const char* mode : {"ar", "sd", "ssd"}) {
    EXPECT_EQ(Count(html, std::string("</span>") + mode + "</th>"), 1U) << mode;
  }
  EXPECT_THAT(html, HasSubstr("<td>3456<small>3200–3600</small></td>"));
  EXPECT_THAT(html, HasSubstr("<td>1.92×<small>1.85–1.99</small></td>"));
  EXPECT_THAT(html, HasSubstr("<td>61.0%</td><td>78.0%</td>"));
  EXPECT_EQ(Count(html, "<td class=\"good\">yes</td>"), 1U);
  EXPECT_EQ(Count(html, "<td class=\"bad\">NO</td>"), 1U);
  EXPECT_THAT(html, HasSubstr("<dt>prompts per set</dt><dd>64</dd>"));
}

TEST(HtmlReport, DrawsOnlyTheChartsThatHaveData) {
  const std::string html = RenderBenchReport(SampleReport());
  // Bars: both sets. Acceptance: one line of three points. Latency: two lines of one set.
  EXPECT_EQ(Count(html, "<svg "), 4U);
  EXPECT_EQ(Count(html, "<polyline "), 3U);
  EXPECT_EQ(Count(html, "<circle "), 3U);
}

TEST(HtmlReport, LabelsScriptedAcceptance) {
  Json report = SampleReport();
  EXPECT_THAT(RenderBenchReport(report), Not(HasSubstr("Scripted acceptance")));
  report["meta"]["acceptance"] = "scripted";
  EXPECT_THAT(RenderBenchReport(report), HasSubstr("Scripted acceptance"));
}

TEST(HtmlReport, TakesAbsentAndMistypedValuesAsAbsent) {
  for (const char* text :
       {"null", "[]", R"({"sets": 3, "meta": []})", R"({"sets": [1, {"modes": [null, {}]}]})",
        R"({"sets": [{"name": 1, "modes": [{"mode": [], "tokens_per_s": {"median": "fast"},
            "speedup": 2, "acceptance_per_position": [null, "x"], "identical": 1,
            "itl_ms": {"histogram": [[0, 5], [1], ["a", 2], 3, [1, -1]]}}]}]})"}) {
    const std::string html = RenderBenchReport(Json::Parse(text));
    EXPECT_EQ(FirstUnbalancedTag(html), "") << text;
    EXPECT_THAT(html, Not(HasSubstr("<svg "))) << text;
    EXPECT_THAT(html, Not(HasSubstr("nan"))) << text;
  }
}

TEST(ReportChart, TicksAreRoundNumbersWithinTheAxis) {
  EXPECT_THAT(LogarithmicTicks(0.5, 200), ElementsAre(DoubleEq(1), DoubleEq(10), DoubleEq(100)));
  EXPECT_THAT(LogarithmicTicks(1.5, 12), ElementsAre(DoubleEq(2), DoubleEq(5), DoubleEq(10)));
}

TEST(ReportChart, FormatsAboutThreeDigits) {
  EXPECT_EQ(FormatNumber(0), "0.00");
  EXPECT_EQ(FormatNumber(0.01234), "0.0123");
  EXPECT_EQ(FormatNumber(1.234), "1.23");
  EXPECT_EQ(FormatNumber(45.67), "45.7");
  EXPECT_EQ(FormatNumber(12345.6), "12346");
}

TEST(ReportChart, BarsAreProportionalAndWhiskersSpanTheSpread) {
  const std::vector<ChartBar> bars = {{"full", 0, 100, 100, 100}, {"half", 1, 50, 25, 75}};
  const std::string svg = BarChart("speed", bars, 100);
  EXPECT_THAT(svg, HasSubstr("width=\"391.0\""));
  EXPECT_THAT(svg, HasSubstr("width=\"195.5\""));
  EXPECT_EQ(Count(svg, "class=\"whisker\""), 1U);
}

TEST(ReportChart, PointsOutsideAreClampedToTheFrame) {
  const std::vector<ChartSeries> lines = {{"a", 0, {{-1, 5}, {9, -5}}}};
  const std::string svg = LineChart("t", {.label = "x", .low = 0, .high = 1},
                                    {.label = "y", .low = 0, .high = 1}, lines, false);
  EXPECT_THAT(svg, HasSubstr("points=\"38.0,8.0 390.0,190.0 \""));
}

}  // namespace
}  // namespace foretoken
