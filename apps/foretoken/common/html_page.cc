#include "apps/foretoken/common/html_page.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/foretoken/common/report_chart.h"

namespace foretoken {
namespace {

constexpr std::string_view kStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #fff; --text: #1c1e21; --soft: #5f6670; --rule: #dfe2e6;
  --good: #0a7a42; --bad: #c0231c; --warn: #8a5200; --warn-page: #fff3d6;
  --s0: #7a828e; --s1: #2463d6; --s2: #d2680a; --s3: #0f8f62;
  --s4: #8b3fd1; --s5: #cf2a72; --s6: #0b87a8; --s7: #6f8a0c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #131517; --card: #1b1e21; --text: #e7e9ec; --soft: #9aa3ad; --rule: #33383e;
    --good: #4fd08a; --bad: #ff7b72; --warn: #ffcf70; --warn-page: #3a2d10;
    --s0: #98a1ad; --s1: #6ea2ff; --s2: #ff9f4a; --s3: #45cf9a;
    --s4: #c08cff; --s5: #ff7eb3; --s6: #4cc9e8; --s7: #b5d34a;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 76rem; background: var(--page);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .25rem; }
h3 { font-size: 1rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
p { margin: .25rem 0 .75rem; color: var(--soft); max-width: 46rem; }
.warn { color: var(--warn); background: var(--warn-page); padding: .5rem .75rem; max-width: none;
  border-radius: 6px; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); gap: .75rem;
  margin: 1rem 0 0; }
dt { color: var(--soft); font-size: .8rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  padding: .85rem 1rem; margin: .75rem 0; }
.charts { display: grid; gap: .75rem; margin: .75rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
.charts .card { margin: 0; max-width: 38rem; }
.scroll { overflow-x: auto; margin: 0 -1rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; white-space: nowrap;
  border-top: 1px solid var(--rule); }
thead th { border-top: 0; color: var(--soft); font-size: .8rem; font-weight: 500;
  vertical-align: bottom; }
th:first-child { text-align: left; padding-left: 0; }
td small { color: var(--soft); display: block; font-size: .78rem; line-height: 1.2; }
.good { color: var(--good); }
.bad { color: var(--bad); font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; margin: .5rem 0; padding: 0;
  list-style: none; font-size: .88rem; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 3px; margin-right: .45em; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--text); font-size: 14.5px; }
svg .num { font-weight: 600; }
svg .tick { fill: var(--soft); font-size: 13px; }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
.grid { stroke: var(--rule); stroke-width: 1; fill: none; }
rect.fill { fill-opacity: .8; }
.whisker { stroke: var(--text); stroke-width: 1.5; fill: none; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
)css";

/// A JSON value as a reader would write it: "0, 1" for [0, 1], nothing quoted.
std::string Plain(const Json& value) {
  if (value.is_null()) return "–";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array()) {
    std::string joined;
    for (const Json& item : value) joined.append(joined.empty() ? "" : ", ").append(Plain(item));
    return joined.empty() ? "–" : joined;
  }
  if (value.is_number_float()) return FormatNumber(value.get<double>());
  return value.dump();
}

std::string ColorRules() {
  std::string css;
  for (int i = 0; i < kReportColors; ++i) {
    css += fmt::format(
        ".fill.s{0} {{ fill: var(--s{0}); }} .line.s{0} {{ stroke: var(--s{0}); }}\n", i);
  }
  return css;
}

}  // namespace

std::string HtmlPage(std::string_view title, std::string_view body) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>",
      EscapeHtml(title));
  html.append(kStyle).append(ColorRules()).append("</style>\n</head>\n<body>\n");
  return html.append(body).append("</body>\n</html>\n");
}

std::string DefinitionList(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string html = "<dl>\n";
  for (const auto& [name, value] : items) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", EscapeHtml(name), EscapeHtml(value));
  }
  return html + "</dl>\n";
}

std::string MetaList(const Json& meta, std::initializer_list<const char*> first) {
  if (!meta.is_object()) return {};
  std::vector<std::pair<std::string, std::string>> items;
  const auto add = [&](std::string name, const Json& value) {
    std::replace(name.begin(), name.end(), '_', ' ');
    items.emplace_back(std::move(name), Plain(value));
  };
  for (const char* key : first) {
    if (meta.contains(key)) add(key, meta[key]);
  }
  for (const auto& [key, value] : meta.items()) {
    if (std::find(first.begin(), first.end(), key) == first.end()) add(key, value);
  }
  return DefinitionList(items);
}

}  // namespace foretoken
