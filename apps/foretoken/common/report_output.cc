#include "apps/foretoken/common/report_output.h"

#include <fmt/core.h>

#include <string_view>

#include "base/files/replace_file.h"
#include "base/text/text.h"
#include "json/json.h"

namespace foretoken {

extern const std::string_view kReportHtml;  // report.html, which CMake embeds.

std::string ReportPage(const Json& report) {
  // "<" stands in strings only, where the escape means the same, so no string ends the element.
  return ReplaceAll(kReportHtml, ">REPORT<", ">" + ReplaceAll(report.dump(), "<", "\\u003c") + "<");
}

Status WriteReport(const ReportFiles& files, const Json& report, const std::string& text) {
  const std::string dump = report.dump(2) + "\n";
  fmt::print("{}", files.json == "-" ? dump : text);
  if (!files.json.empty() && files.json != "-") FT_RETURN_IF_ERROR(ReplaceFile(files.json, dump));
  return files.html.empty() ? Status() : ReplaceFile(files.html, ReportPage(report));
}

}  // namespace foretoken
